package ci

// Role is what a token's or a user's bearer may do. Each includes the ones before.
type Role string

const (
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // starts, cancels, reruns, approves, retries, replays
	Admin    Role = "admin"    // tokens, pins, backups
)

// Valid reports whether r is a role.
func (r Role) Valid() bool { return r.rank() > 0 }

// Allows reports whether r includes need.
func (r Role) Allows(need Role) bool { return need.rank() > 0 && r.rank() >= need.rank() }

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 1
	case Operator:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// Token is an API token. The store keeps the digest of its value, never the value.
type Token struct {
	Name      string `json:"name"`
	Role      Role   `json:"role"`
	CreatedAt Time   `json:"created_at"`
}
