package ci_test

import (
	"testing"

	"docket/store/ci"
)

func TestRole_Allows(t *testing.T) {
	order := []ci.Role{ci.Viewer, ci.Operator, ci.Admin}
	for i, have := range order {
		for j, need := range order {
			if got := have.Allows(need); got != (i >= j) {
				t.Errorf("%s for %s: %v", have, need, got)
			}
		}
	}
	for _, odd := range []ci.Role{"", "root", "Admin"} {
		if odd.Valid() || odd.Allows(ci.Viewer) || ci.Admin.Allows(odd) {
			t.Errorf("%q is no role", odd)
		}
	}
}
