package server

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// logLevel is from how grave a line on docket logs.
type logLevel struct {
	Level string `json:"level"` // debug, info, warn or error
}

// GET /log-level
func (s *Server) getLogLevel(c echo.Context) error {
	if s.level == nil {
		return errFixedLevel()
	}
	return c.JSON(http.StatusOK, logLevel{strings.ToLower(s.level.Level().String())})
}

// PUT /log-level changes it until the configuration is read again.
func (s *Server) putLogLevel(c echo.Context) error {
	if s.level == nil {
		return errFixedLevel()
	}
	var want logLevel
	if err := decode(c, &want); err != nil {
		return err
	}
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[want.Level]
	if !ok {
		return ci.Errorf(ci.CodeInvalid, "level is %q; send one of debug, info, warn, error", want.Level)
	}
	if level <= slog.LevelInfo {
		s.level.Set(level)
	}
	s.log.Info("log level changed", keyLevel, want.Level, keyBy, by(c).Name)
	s.level.Set(level)
	return c.JSON(http.StatusOK, want)
}

func errFixedLevel() error {
	return ci.Errorf(ci.CodeConflict, "this server's log level cannot be changed; restart it with another log.level")
}
