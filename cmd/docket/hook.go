package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newHook(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "hook",
		Short:   "Try a webhook",
		Long:    "Try a webhook, as the provider would send it.",
		Example: "  docket hook send --event push payload.json",
	}, newHookSend(a))
}

// hookFlags say what is delivered and where.
type hookFlags struct {
	event       string
	delivery    string
	integration string
	url         string
}

func newHookSend(a *app) *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:   "send FILE",
		Short: "Sign a payload and deliver it, as the provider would",
		Long: `Sign a payload file with the integration's first webhook secret, deliver it to the first
listener that serves hooks with the headers of the integration's provider, and print the
status and the reply. "-" reads the payload from stdin. Exit code 0 if the reply is a 2xx.`,
		Example: `  docket hook send --event push payload.json
  docket hook send --event ping --integration github - < ping.json
  docket hook send --event push --delivery 72d3162e-cc78-11e3-81ab-4c9367dc0958 payload.json`,
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.event == "" {
				return usagef(cmd, "--event is missing: name the payload's kind, as in --event push")
			}
			if !ci.PrintableHeader(f.event) {
				return usagef(cmd, "--event must be 1 to %d printable ASCII characters", ci.MaxHeaderValue)
			}
			if f.delivery == "" {
				f.delivery = newGUID(a.now())
			}
			if !ci.PrintableHeader(f.delivery) {
				return usagef(cmd, "--delivery must be 1 to %d printable ASCII characters", ci.MaxHeaderValue)
			}
			return a.sendHook(cmd, &f, args[0])
		},
	}
	cmd.Flags().StringVar(&f.event, "event", "", "`EVENT` kind of the payload: push, pull_request, ping, ...")
	cmd.Flags().StringVar(&f.delivery, "delivery", "", "`ID` of the delivery (default a new GUID)")
	cmd.Flags().StringVar(&f.integration, "integration", "", "`NAME` of the integration; needed where there are several")
	cmd.Flags().StringVar(&f.url, "url", "", "deliver to this `URL` instead of a configured listener")
	return cmd
}

func (a *app) sendHook(cmd *cobra.Command, f *hookFlags, file string) error {
	cfg, path, err := a.load()
	if err != nil {
		return err
	}
	in, err := pickIntegration(cmd, cfg, path, f.integration)
	if err != nil {
		return err
	}
	to := f.url
	if to == "" {
		if to, err = hookURL(cfg, in.Name); err != nil {
			return err
		}
	} else if trouble := addressTrouble(to, "http", "https"); trouble != "" {
		return usagef(cmd, "--url %q %s", redactURL(to), trouble)
	}
	body, err := a.payload(file)
	if err != nil {
		return err
	}
	return a.deliver(cmd.Context(), to, f.delivery, hookHeader(in.Provider, f.event, f.delivery, in.WebhookSecrets[0], body), body)
}

func pickIntegration(cmd *cobra.Command, cfg *ci.Config, path, name string) (*ci.Integration, error) {
	switch {
	case name != "":
		in := cfg.Integration(name)
		if in == nil {
			return nil, fmt.Errorf("%s has no integration %q; it has %s", path, name, joined(summarize(path, cfg).Integrations))
		}
		return in, nil
	case len(cfg.Integrations) == 1:
		return &cfg.Integrations[0], nil
	case len(cfg.Integrations) == 0:
		return nil, fmt.Errorf("%s has no integration; add one under integrations", path)
	}
	return nil, usagef(cmd, "there are several integrations: choose with --integration one of %s", joined(summarize(path, cfg).Integrations))
}

// hookURL is the integration's address at the first plain listener that serves hooks.
func hookURL(cfg *ci.Config, integration string) (string, error) {
	for _, l := range cfg.Listen {
		if !l.Serves("hooks") || l.TLS != nil { // a certificate is not for the name that this machine knows
			continue
		}
		host, port, err := net.SplitHostPort(l.Address)
		if err != nil {
			return "", err
		}
		if port == "0" {
			return "", fmt.Errorf("the listener %s takes any free port; name its address with --url", l.Address)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return "http://" + net.JoinHostPort(host, port) + "/hooks/" + url.PathEscape(integration), nil
	}
	return "", errors.New("no listener serves hooks; add one under listen, or name the address of one with TLS with --url, as in https://ci.example.org/hooks/" + url.PathEscape(integration))
}

// payload reads a file, or stdin for "-".
func (a *app) payload(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.in)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the payload: %s", fileTrouble(file, err))
	}
	return b, nil
}

// hookTimeout is how long the receiver has to answer: GitHub waits 10 s.
const hookTimeout = 10 * time.Second

func (a *app) deliver(ctx context.Context, to, delivery string, header http.Header, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	resp, err := postHook(ctx, to, header, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("the reply of %s broke off: %w", to, err)
	}
	fmt.Fprintln(a.out, resp.Status)
	if indentJSON(a.out, reply) != nil && len(reply) > 0 {
		fmt.Fprintln(a.out, string(bytes.TrimSpace(reply)))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the delivery %s was refused with %s; the reply says why", delivery, resp.Status)
	}
	return nil
}

// newGUID returns a version-1 UUID (RFC 9562) with a random node, as GitHub's
// delivery ids are.
func newGUID(now time.Time) string {
	// 100 ns steps since 1582-10-15, when the Gregorian calendar began.
	const gregorian = 0x01B21DD213814000
	t := uint64(now.UnixNano()/100) + gregorian
	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint32(b[0:], uint32(t))
	binary.BigEndian.PutUint16(b[4:], uint16(t>>32))
	binary.BigEndian.PutUint16(b[6:], uint16(t>>48)&0x0fff|0x1000)
	b[8] = b[8]&0x3f | 0x80
	b[10] |= 1 // a node that is no network card's
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
