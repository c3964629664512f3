package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func TestLimits(t *testing.T) {
	tests := []struct {
		name               string
		replicas           int32
		surge, unavailable string
		want               limits
	}{
		{"percentages: maxSurge rounds up, maxUnavailable rounds down", 10, "25%", "25%", limits{10, 3, 2}},
		{"numbers", 10, "3", "2", limits{10, 3, 2}},
		{"both are 0", 1, "0%", "1%", limits{1, 0, 1}},
		{"both 0", 5, "0", "0", limits{5, 0, 1}},
		{"maxSurge 1% rounds up to 1", 1, "1%", "25%", limits{1, 1, 0}},
		{"maxUnavailable 0", 2, "1%", "0%", limits{2, 1, 0}},
		{"maxUnavailable 100%", 4, "0", "100%", limits{4, 0, 4}},
		{"maxUnavailable above replicas", 2, "1", "5", limits{2, 1, 2}},
		{"maxSurge above 100%", 4, "150%", "0", limits{4, 6, 0}},
		{"0 replicas, percentages", 0, "25%", "25%", limits{0, 0, 0}},
		{"0 replicas, numbers", 0, "3", "2", limits{0, 3, 0}},
		{"exact percentages do not round", 4, "25%", "25%", limits{4, 1, 1}},
		{"rounding just above and below an integer", 99, "1%", "1%", limits{99, 1, 0}},
		{"negative numbers are 0", 3, "-1", "-1", limits{3, 0, 1}},
		{"absent", 3, "", "", limits{3, 0, 1}},
	}
	parse := func(text string) *intstr.IntOrString {
		if text == "" {
			return nil
		}
		return new(intstr.Parse(text))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(test.replicas, func(d *appsv1.Deployment) {
				d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: parse(test.surge), MaxUnavailable: parse(test.unavailable)}
			})
			got, err := limitsOf(d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(limits{})); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimitsOfUnusualSpecs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   limits
	}{
		"replicas not set":      {func(d *appsv1.Deployment) { d.Spec.Replicas = nil; surgeAndUnavailable(1, 0)(d) }, limits{1, 1, 0}},
		"rollingUpdate not set": {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }, limits{3, 0, 1}},
		"recreate":              {asRecreate, limits{3, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := limitsOf(newDeployment(3, test.change)); err != nil || got != test.want {
				t.Errorf("limits %v, error %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestMalformedLimits(t *testing.T) {
	for _, text := range []string{"x", "1.5%", "%", " 1%"} {
		d := newDeployment(3, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate.MaxSurge = &intstr.IntOrString{Type: intstr.String, StrVal: text}
		})
		if _, err := limitsOf(d); err == nil {
			t.Errorf("maxSurge %q: no error", text)
		}
	}
}

// checkLimits checks that a rollout with these limits can proceed, and that minAvailable is
// between 0 and replicas.
func checkLimits(t interface{ Fatalf(string, ...any) }, l limits) {
	switch {
	case l.replicas > 0 && l.maxSurge+l.maxUnavailable == 0:
		t.Fatalf("%+v: maxSurge and maxUnavailable are both 0", l)
	case l.maxSurge < 0 || l.maxUnavailable < 0 || l.maxUnavailable > l.replicas:
		t.Fatalf("%+v: out of range", l)
	case l.maxReplicas() < l.replicas || l.minAvailable() < 0:
		t.Fatalf("%+v: maxReplicas %d, minAvailable %d", l, l.maxReplicas(), l.minAvailable())
	}
}

func FuzzLimits(f *testing.F) {
	f.Add(int32(10), "25%", "25%")
	f.Add(int32(2147483647), "2147483647", "9999999999%")
	f.Add(int32(1), "-5%", "0x10")
	f.Fuzz(func(t *testing.T, replicas int32, surge, unavailable string) {
		if replicas < 0 {
			t.Skip("the API server rejects negative numbers")
		}
		d := newDeployment(replicas, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.Parse(surge)), MaxUnavailable: new(intstr.Parse(unavailable))}
		})
		if l, err := limitsOf(d); err == nil {
			checkLimits(t, l)
		}
	})
}

// drawLimits draws random limits that limitsOf could return.
func drawLimits(t *rapid.T) limits {
	d := newDeployment(rapid.Int32Range(0, 40).Draw(t, "replicas"), surgeAndUnavailable(
		rapid.Int32Range(0, 15).Draw(t, "surge"), rapid.Int32Range(0, 15).Draw(t, "unavailable")))
	l, err := limitsOf(d)
	if err != nil {
		t.Fatal(err)
	}
	checkLimits(t, l)
	return l
}
