package main

import (
	"context"
	"os"
	"slices"
)

// lookAtSecrets looks whether other users of this machine can read the files
// that the configuration takes secrets from.
func (d *doctor) lookAtSecrets(context.Context) (list []finding) {
	text, err := readConfig(d.path)
	if err != nil {
		return []finding{wrong("try again", "the configuration cannot be read any more: %v", err)}
	}
	var files []string
	_, _ = parseConfig(d.path, text, d.a.getenv, func(name string) ([]byte, error) { // sound a moment ago
		files = append(files, name)
		return readSecretFile(name)
	})
	slices.Sort(files)
	for _, name := range slices.Compact(files) {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o007 != 0 {
			list = append(list, warning("chmod o= "+name+", and let docket's user or group own it",
				"the secret in %s has mode %04o, which lets every user of this machine at it", name, info.Mode().Perm()))
		}
	}
	if len(list) == 0 {
		list = append(list, fine("nobody but their owners and groups can read the secrets' files"))
	}
	return list
}
