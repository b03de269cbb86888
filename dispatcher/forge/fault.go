package forge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// LimitError says that GitHub asks to be left alone.
type LimitError struct {
	Until       time.Time // by docket's clock
	Integration string
	Said        string // by GitHub; "" for nothing
}

// Error says until when.
func (e *LimitError) Error() string {
	return fmt.Sprintf("GitHub's rate limit holds the integration %s until %s: %s", e.Integration, e.Until.UTC().Format(time.RFC3339), e.Said)
}

// ClockError says that GitHub does not let the App in because this machine's
// clock is off.
type ClockError struct {
	Ahead time.Duration // of GitHub's clock; negative: behind it
}

// Error says by how much, and how to mend it.
func (e *ClockError) Error() string {
	way, by := "ahead of", e.Ahead
	if by < 0 {
		way, by = "behind", -by
	}
	return fmt.Sprintf("this machine's clock is %d s %s GitHub's; set it by NTP", int64(by.Round(time.Second)/time.Second), way)
}

// AnswerError is GitHub's refusal to let the App act for an installation.
type AnswerError struct {
	Installation int64 // 0: it was asked which one a repository belongs to
	Status       int
	Header       http.Header
	Body         []byte
}

// Error says what GitHub said.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("GitHub gives no token for %s: %d %s", e.what(), e.Status, said(e.Body))
}

func (e *AnswerError) what() string {
	if e.Installation == 0 {
		return "the repository"
	}
	return fmt.Sprintf("the installation %d", e.Installation)
}

// answerError keeps an error that is the package's own or the network's, and
// makes any answer an AnswerError.
func (f *Forge) answerError(_ *ci.Integration, installation int64, resp *github.Response, err error) error {
	var clock *ClockError
	if errors.As(err, &clock) || resp == nil || resp.Response == nil {
		return err
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return &AnswerError{installation, resp.StatusCode, resp.Header, body}
}

// clockError returns what an App's 401 has to do with this machine's clock,
// or nil. It is GitHub's own Date that tells.
func (f *Forge) clockError(resp *http.Response) *ClockError {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil
	}
	body := peek(resp)
	ahead := f.now().Sub(date)
	outside := ahead > backdate-slack || ahead < -(lifetime-slack)
	named := bytes.Contains(body, []byte("'iat'")) || bytes.Contains(body, []byte("'exp'"))
	if outside || named && ahead.Abs() > slack {
		return &ClockError{Ahead: ahead.Truncate(time.Second)}
	}
	return nil
}

// slack is how exact a comparison with the Date header is.
const slack = 5 * time.Second

// peek reads an answer's body and puts it back.
func peek(resp *http.Response) []byte {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// hideIn masks a token in an answer's body.
func hideIn(resp *http.Response, token string) {
	if token == "" {
		return
	}
	body := bytes.ReplaceAll(peek(resp), []byte(token), []byte(ci.Mask))
	resp.Body = io.NopCloser(bytes.NewReader(body))
}

// said returns the message in an answer of GitHub's, on one line.
func said(body []byte) string {
	var m struct{ Message string }
	text := string(body)
	if json.Unmarshal(body, &m) == nil && m.Message != "" {
		text = m.Message
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// judge turns what came of a call into an error for people.
//
// *LimitError for a rate limit, *ClockError; a ci.Error with CodeForbidden
// where the token or the App may not do it, CodeNotFound where GitHub knows no
// such thing, CodeUnavailable where it may work next time, CodeInvalid else.
func (f *Forge) judge(in *ci.Integration, doing string, resp *github.Response, err error) error {
	var clock *ClockError
	var own *ci.Error
	var answer *AnswerError
	var accepted *github.AcceptedError
	switch {
	case err == nil, errors.As(err, &accepted):
		return nil
	case errors.As(err, &clock):
		return clock
	case errors.As(err, &own):
		return own
	case errors.As(err, &answer):
	case resp != nil && resp.Response != nil:
		answer = &AnswerError{Status: resp.StatusCode, Header: resp.Header, Body: peek(resp.Response)}
	default:
		return ci.Wrap(ci.CodeUnavailable, err, "%s: %s could not be reached", doing, host(in))
	}
	now := f.now()
	text := said(answer.Body)
	if wait, limited := LimitWait(answer.Status, answer.Header, answer.Body, now, func() time.Duration { return silentLimitWait }); limited {
		return &LimitError{now.Add(wait), in.Name, text}
	}
	code, mend := codeOf(answer.Status)
	return ci.Errorf(code, "%s: %s answered %d %s%s", doing, host(in), answer.Status, text, mend)
}

func codeOf(status int) (code ci.Code, mend string) {
	switch {
	case status >= 500:
		return ci.CodeUnavailable, ""
	case status == http.StatusUnauthorized:
		return ci.CodeForbidden, "; check the integration's token, or the App's id and private key"
	case status == http.StatusForbidden:
		return ci.CodeForbidden, "; check what the token or the App may do, and that its installation is not suspended"
	case status == http.StatusNotFound:
		return ci.CodeNotFound, "; check that the repository exists and that the token or the App may see it"
	case status >= 300 && status < 400:
		return ci.CodeInvalid, "; docket follows no redirect: check api_url, and whether the repository was renamed"
	}
	return ci.CodeInvalid, ""
}
