package main

import (
	"context"
	"slices"
)

// lookAtBackups looks how old the newest backup is that docket made by itself.
func (d *doctor) lookAtBackups(context.Context) []finding {
	b := d.cfg.Backup
	if b == nil {
		return []finding{fine("docket makes none by itself, since backup is not configured; see that something does")}
	}
	const mend = "the server's log says what keeps it; check the directory and its free space"
	names, err := ownBackups(b.Dir)
	if err != nil {
		return []finding{wrong("create it, or correct backup.dir", "the backups in %s cannot be looked at: %v", b.Dir, err)}
	}
	now := d.a.now()
	for _, name := range slices.Backward(names) {
		at := backupAt(name)
		if at.After(now) { // of a clock that was wrong
			continue
		}
		if age := now.Sub(at); age > 2*b.Every {
			return []finding{wrong(mend, "the newest backup is %s and %d hours old, though one is made every %s", name, int(age.Hours()), b.Every)}
		}
		return []finding{fine("the newest backup is %s, of %d that are kept", name, len(names))}
	}
	return []finding{warning(mend, "there is no backup in %s yet; a running server makes one when it starts", b.Dir)}
}
