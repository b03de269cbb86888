// Package gitea reads the webhooks of Gitea and Forgejo: whether a delivery is
// genuine, and what it says, in the words that GitHub has for it. It is pure:
// values in, values out, no I/O.
package gitea
