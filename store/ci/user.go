package ci

// AdminUser is who a login link signs in that was made for nobody in
// particular. It needs no record; a user of this name is an admin.
const AdminUser = "admin"

// User is a person who may sign in to the page. The store keeps a hash of the
// password, which is not part of this.
type User struct {
	Name      string `json:"name"`
	Role      Role   `json:"role"`
	CreatedAt Time   `json:"created_at"`
}

// Session is one browser that is signed in. The store keeps the digest of its
// token, never the token.
type Session struct {
	User      string `json:"user"`
	Role      Role   `json:"role,omitempty"` // the user's now; no part of the record
	CreatedAt Time   `json:"created_at"`
	ExpiresAt Time   `json:"expires_at"` // moves on while the session is used
	SeenAt    Time   `json:"seen_at"`    // to about an hour
	Address   string `json:"address"`    // of the browser when it was seen
}

// LoginLink signs one browser in, once. The store keeps the digest of its
// value, never the value.
type LoginLink struct {
	User      string `json:"user"`
	Role      Role   `json:"role,omitempty"` // the user's now; no part of the record
	CreatedAt Time   `json:"created_at"`
	ExpiresAt Time   `json:"expires_at"`
	By        By     `json:"by"`
}
