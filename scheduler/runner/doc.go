// Package runner carries one claimed run to its end: a private workspace at
// the exact commit, one `sh -eu` per step in a clean environment, output with
// its secrets masked, and at the end of every step, of every stop and of the
// server itself no process left behind. It works on Linux only.
//
// Nothing here knows the store: what must be durable goes through a Recorder.
//
// Everything that a run starts, git included, is started by a supervisor: a
// small process of the same binary (Supervise) that adopts whatever its
// descendants orphan. It holds one socket to the server. When the server is
// gone, however it went, the socket ends and the supervisor ends the tree.
package runner
