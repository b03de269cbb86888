package server

import (
	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// judge decides what a verified event leads to under a configuration, and
// where its repositories are pinned now. It writes nothing.
func (s *Server) judge(cfg *ci.Config, in *ci.Integration, e *ci.Event, receipt ci.ReceiptID) (pipeline.Judgement, error) {
	pins, err := s.store.Pins()
	if err != nil {
		return pipeline.Judgement{}, err
	}
	return pipeline.Judge(cfg, in, e, receipt.String(), pins)
}
