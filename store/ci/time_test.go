package ci_test

import (
	"encoding/json"
	"testing"
	"time"

	"docket/store/ci"
)

func TestTime_JSON(t *testing.T) {
	zone := time.FixedZone("elsewhere", 2*3600)
	for want, in := range map[string]time.Time{
		`null`:                       {},
		`"2026-03-01T10:00:00.123Z"`: time.Date(2026, 3, 1, 12, 0, 0, 123_999_999, zone),
		`"2026-03-01T10:00:00.000Z"`: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
		`"1970-01-01T00:00:00.000Z"`: time.Unix(0, 0),
	} {
		b, err := json.Marshal(ci.At(in))
		if err != nil || string(b) != want {
			t.Errorf("%v: %s, %v; want %s", in, b, err, want)
		}
		var back ci.Time
		if err := json.Unmarshal(b, &back); err != nil || !back.Equal(ci.At(in).Time) || back.IsZero() != in.IsZero() {
			t.Errorf("%s came back as %v, %v", b, back, err)
		}
	}
	for _, bad := range []string{`"yesterday"`, `12`, `""`, `"`, `{}`, `"2026-03-01"`} {
		var v ci.Time
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s was read as %v", bad, v)
		}
	}
	var v ci.Time
	if err := json.Unmarshal([]byte(`"2026-03-01T12:00:00.5+02:00"`), &v); err != nil || v.Format(ci.TimeLayout) != "2026-03-01T10:00:00.500Z" {
		t.Errorf("another zone: %v, %v", v, err)
	}
}

// Ensure that what was cut when it was made is what comes back.
func TestAt_IsWhatItsJSONIs(t *testing.T) {
	now := ci.At(time.Now())
	b, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var back ci.Time
	if err := json.Unmarshal(b, &back); err != nil || back != now {
		t.Fatalf("%#v, %#v, %v", now, back, err)
	}
}

func TestDuration_JSON(t *testing.T) {
	b, err := json.Marshal(ci.Duration(90 * time.Second))
	if err != nil || string(b) != `"1m30s"` {
		t.Fatalf("%s, %v", b, err)
	}
	var d ci.Duration
	if err := json.Unmarshal([]byte(`"30m"`), &d); err != nil || d != ci.Duration(30*time.Minute) {
		t.Fatalf("%v, %v", d, err)
	}
	if err := json.Unmarshal([]byte(`"soon"`), &d); err == nil {
		t.Fatal("soon is no duration")
	}
}
