package store

import (
	"errors"
	"strings"
	"syscall"
)

const (
	errNoMemory = syscall.ENOMEM
	errReadOnly = syscall.EROFS
	errNoFiles  = syscall.EMFILE
)

// recoverable reports whether a failed commit may simply be tried again: the
// disk was full, and bbolt gave back all it had taken; or the file could not
// grow, which comes before anything is written. Of that one bbolt keeps only
// the words.
func recoverable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		strings.HasPrefix(err.Error(), "file resize error: ")
}
