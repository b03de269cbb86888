package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ensure that at Gitea and Forgejo it is found out whether the token's owner
// may write statuses, and each way in which that is not so is told apart.
func TestDoctorLooksAtGitea(t *testing.T) {
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/git/api/v1/repos/acme/api" && r.Header.Get("Authorization") != "token "+giteaToken {
				code = http.StatusTeapot
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		state  string
		says   string
	}{
		"may push":          {answer(200, `{"permissions": {"push": true}}`), stateOK, "it may do what docket needs in acme/api"},
		"is admin":          {answer(200, `{"permissions": {"admin": true}}`), stateOK, "it may do what docket needs in acme/api"},
		"may only read":     {answer(200, `{"permissions": {"pull": true}}`), stateWrong, "let the token's owner write to the repository"},
		"no such token":     {answer(401, ``), stateWrong, "make a new token"},
		"no scope":          {answer(403, ``), stateWrong, "the scope write:repository"},
		"no repository":     {answer(404, ``), stateWrong, "answered 404 for acme/api"},
		"not Gitea":         {answer(200, `<html>`), stateWrong, "does not answer as Gitea does"},
		"a redirect is not": {answer(302, ``), stateWrong, "answered 302"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(tt.answer)
			t.Cleanup(srv.Close)
			r := newGiteaDoctorRig(t, srv.URL+"/git/api/v1/")
			code, found := r.examine()
			mustFind(t, found, "integration gitea", tt.state, tt.says)
			if want := map[string]int{stateOK: exitDone, stateWrong: exitFailed}[tt.state]; code != want {
				t.Errorf("exit code %d, want %d: %+v", code, want, found)
			}
			for _, list := range found {
				if text := string(mustMarshal(t, list)); strings.Contains(text, giteaToken) {
					t.Errorf("the token is told: %s", text)
				}
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, found := newGiteaDoctorRig(t, gone.URL+"/git/api/v1/").examine()
	mustFind(t, found, "integration gitea", stateWrong, "cannot be reached", "check api_url")
	mustFind(t, found, "clock of gitea", stateWrong, "cannot be reached")
}

func newGiteaDoctorRig(t *testing.T, api string) *doctorRig {
	t.Helper()
	r := newDoctorRig(t, false)
	r.write("gitea.token", giteaToken)
	r.config["integrations"] = []obj{{
		"name": "gitea", "provider": "gitea", "api_url": api, "token": obj{"file": "gitea.token"},
		"webhook_secrets": []obj{{"file": "hook.secret"}},
	}}
	r.config["projects"].([]obj)[0]["integration"] = "gitea"
	return r
}

// newTLSServer answers with a certificate for 127.0.0.1 that ends at a time,
// and returns whom a client has to trust.
func newTLSServer(t *testing.T, end time.Time) (srv *httptest.Server, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-240 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	srv = httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trust = x509.NewCertPool()
	trust.AddCert(cert)
	return srv, trust
}

// Ensure that a certificate that ends soon is a warning, and one that nobody
// would trust is wrong.
func TestDoctorLooksAtCertificates(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	srv, trust := newTLSServer(t, now.Add(20*day))
	c, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{RootCAs: trust})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, tt := range map[string]struct {
		at    time.Time
		state string
		says  string
	}{
		"in 20 days": {now, stateOK, "holds until " + now.Add(20*day).UTC().Format("2006-01-02")},
		"in 13 days": {now.Add(7*day + time.Hour), stateWarning, "ends in 12 days, on "},
		"it is over": {now.Add(21 * day), stateWrong, "ended on "},
	} {
		if f := lookAtCertificate("https://ci.test", c.ConnectionState(), tt.at); f.State != tt.state || !strings.Contains(f.Says, tt.says) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	expired, _ := newTLSServer(t, now.Add(-day))
	for what, s := range map[string]*httptest.Server{"of a stranger": srv, "that is over": expired} {
		f := lookAtTarget(context.Background(), target{"https://x.test", "https", s.Listener.Addr().String()})
		if f.State != stateWrong || !strings.Contains(f.Says, "certificate") {
			t.Errorf("a certificate %s: %+v", what, f)
		}
	}
}

// Ensure that a data directory on a file system whose locks and syncs are not
// to be relied on is told.
func TestDoctorLooksAtTheFileSystem(t *testing.T) {
	for kind, want := range map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.V9FS_MAGIC: "9p",
		unix.FUSE_SUPER_MAGIC: "FUSE", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs",
	} {
		// Some architectures give the type with a sign.
		for _, is := range []int64{kind, int64(int32(uint32(kind)))} {
			f := lookAtFileSystem("/d", is)
			if f.State != stateWarning || !strings.Contains(f.Says, "/d lies on "+want) || f.Mend == "" {
				t.Errorf("%s: %+v", want, f)
			}
		}
	}
	for _, good := range []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC} {
		if f := lookAtFileSystem("/d", good); f.State != stateOK {
			t.Errorf("%x: %+v", good, f)
		}
	}
}

// Ensure that docket doctor finds a data directory that lies in memory, where
// the machine has such a place.
func TestDoctorFindsMemory(t *testing.T) {
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || int64(st.Type) != unix.TMPFS_MAGIC {
		t.Skip("there is no tmpfs at /dev/shm to look at")
	}
	dir, err := os.MkdirTemp("/dev/shm", "docket")
	if err != nil {
		t.Skip("nothing can be made in /dev/shm: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := newDoctorRig(t, false)
	r.config["data_dir"] = dir
	_, found := r.examine()
	mustFind(t, found, "data directory", stateWarning, "lies on tmpfs", "move data_dir")
}
