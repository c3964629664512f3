package operator

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestCheckScenario checks which manifests of a workload are refused.
func TestCheckScenario(t *testing.T) {
	const pods = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}`
	for _, test := range []struct{ name, create, want string }{
		{"valid", "kind: StatefulSet, manifest: {spec: {serviceName: web, selector: {matchLabels: {app: web}}, " + pods + "}}", ""},
		{"other labels", "kind: StatefulSet, manifest: {spec: {serviceName: web, selector: {matchLabels: {app: db}}, " + pods + "}}",
			`x.yaml:3:146: workload[0].create.manifest.spec.template.metadata.labels: found "app=web"; expected labels that spec.selector matches: app=db`},
		{"no selector", "kind: StatefulSet, manifest: {spec: {serviceName: web, " + pods + "}}", "workload[0].create.manifest.spec.selector: found nothing; expected"},
		{"valid job", "kind: Job, apiVersion: batch/v1, manifest: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}", ""},
		{"job without an image", "kind: Job, apiVersion: batch/v1, manifest: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}}", ""},
		{"cron job without containers", "kind: CronJob, apiVersion: batch/v1, manifest: {spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}}", ""},
		{"job that restarts", "kind: Job, apiVersion: batch/v1, manifest: {spec: {template: {spec: {restartPolicy: Always, containers: [{name: a, image: a}]}}}}", `restartPolicy: found "Always"; expected Never or OnFailure`},
		{"custom resource", "kind: Widget, apiVersion: example.com/v1, manifest: {spec: {template: 5}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := scenario.Parse("x.yaml", []byte("name: x\nworkload:\n  - create: {name: web, "+test.create+"}\n"))
			if err != nil {
				t.Fatal(err)
			}
			err = CheckScenario(s)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}
