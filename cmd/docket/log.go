package main

import (
	"io"
	"log/slog"

	"docket/store/ci"
)

// Log keys, the same in every line about the same thing.
const (
	keyError   = "error"
	keyReason  = "reason"
	keyKept    = "kept"
	keyWorker  = "worker"
	keyAddress = "address"
	keyServes  = "serves"
	keyProgram = "program"
	keyKey     = "key"
	keySince   = "since"
	keyBy      = "by"
	keyLevel   = "level"
	keyFile    = "file"
	keyDir     = "dir"
	keyWait    = "wait"
	keyBytes   = "bytes"
)

// levelOf returns the level that a configuration names; info for one that
// does not say.
func levelOf(cfg *ci.Config) slog.Level {
	var level slog.Level
	if cfg == nil || level.UnmarshalText([]byte(cfg.Log.Level)) != nil {
		return slog.LevelInfo
	}
	return level
}

// newLog makes docket's log as the configuration wants it. Its level can be
// changed at any time.
func newLog(w io.Writer, cfg *ci.Config, level *slog.LevelVar) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	level.Set(levelOf(cfg))
	if cfg != nil && cfg.Log.Format == ci.LogJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
