package scenario

import (
	"fmt"
	"strings"
	"testing"
)

// TestSelects checks which faults CheckReachable refuses, because no request or object can match them. An empty
// error means that the fault can act.
func TestSelects(t *testing.T) {
	const workload = `name: small
workload:
  - create: {kind: Deployment, name: web, replicas: 3, labels: {app: web, tier: front}, selector: {app: web}}
  - create: {kind: Pod, name: spare, count: 2}
  - create: {kind: Service, name: site, selector: {app: web}}
`
	for _, test := range []struct{ name, fault, want string }{
		{"a Deployment as the owner of pods", "api-error: {verb: create, resource: pods, code: 500, owner: Deployment/web}",
			`owner: found "Deployment/web", but a Deployment does not own pods itself; expected ReplicaSet/web-*`},
		{"an owner of Deployments", "api-error: {verb: update, resource: deployments.apps, code: 500, owner: Deployment/web}",
			`owner: found "Deployment/web", but deployments.apps have no owner; use the field name instead, such as name: web`},
		{"a Service as the owner of pods", "watch-skip: {resource: pods, owner: Service/site}",
			`owner: found "Service/site", but a Service does not own pods; expected an owner of the kind DaemonSet, Job, ReplicaSet, ReplicationController or StatefulSet`},
		{"a ReplicaSet as the owner of ReplicaSets", "name-taken: {owner: ReplicaSet/web}",
			`owner: found "ReplicaSet/web", but a ReplicaSet does not own replicasets.apps; expected an owner of the kind Deployment`},
		{"a kind with its group", "watch-skip: {resource: pods, owner: ReplicaSet.apps/web-*}",
			`owner: found the unknown kind "ReplicaSet.apps"; expected the kind of an owner, such as ReplicaSet; did you mean ReplicaSet?`},
		{"a short name of a kind", "watch-skip: {resource: pods, owner: rs/web-*}",
			`owner: found the unknown kind "rs"; expected the kind of an owner, such as ReplicaSet; did you mean ReplicaSet?`},
		{"a kind of Kubernetes", "watch-skip: {resource: pods, owner: Secret/web}", ""},
		{"a prefix of names", "pod-pending: {prefix: wbe}", `prefix: found "wbe", but the workload has no such Pod; expected spare-0, spare-1 or web-*, or the field operator: {} for other controllers`},
		{"a short prefix", "pod-pending: {prefix: w}", ""},
		{"another owner", "watch-skip: {resource: pods, owner: ConfigMap/other}", ""},
		{"any owner", "watch-skip: {resource: pods, owner: '*/web-*'}", ""},
		{"the name of a Deployment", "watch-skip: {resource: deployments.apps, name: wbe}",
			`name: found "wbe", but the workload has no such Deployment; expected web`},
		{"a part of a name", "watch-skip: {resource: pods, name: web}",
			`name: found "web", but the workload has no such Pod; expected spare-0, spare-1 or web-*, or the field operator: {} for other controllers`},
		{"the base of the names of pods", "watch-skip: {resource: pods, name: spare}",
			`name: found "spare", but the workload has no such Pod; expected spare-0, spare-1 or web-*; did you mean spare-0?`},
		{"a dot in the name of a pod", "watch-skip: {resource: pods, name: web-x.*}",
			`name: found "web-x.*", but the workload has no such Pod; expected spare-0, spare-1 or web-*, or the field operator: {} for other controllers`},
		{"a glob", "watch-skip: {resource: pods, name: 'w?b-[a-f]*'}", ""},
		{"a name of an event", "watch-skip: {resource: events, name: web.*}", ""},
		{"a Service of the cluster", "watch-skip: {resource: services, name: kubernetes}", ""},
		{"the Endpoints of a Service", "api-error: {verb: update, resource: endpoints, code: 500, name: site}", ""},
		{"another namespace", "api-error: {verb: create, resource: pods, code: 500, namespace: defaultt}",
			`namespace: found "defaultt", but no run has such a namespace; expected gauntlet, which is the namespace of the workload; did you mean default?`},
		{"a namespace that no user creates", "api-error: {verb: create, resource: pods, code: 500, namespace: prod-*}", ""},
		{"a namespace of the cluster", "api-error: {verb: create, resource: pods, code: 500, namespace: kube-*}", ""},
		{"a namespace of the program", "api-error: {verb: create, resource: pods, code: 500, namespace: local-path-storage}", ""},
		{"a pod of the cluster", "watch-skip: {resource: pods, name: x}\n  - api-error: {verb: create, resource: pods, code: 500, namespace: kube-system, name: coredns, owner: ReplicaSet/coredns-1}",
			`name: found "x", but the workload has no such Pod; expected spare-0, spare-1 or web-*, or the field operator: {} for other controllers`},
		{"a name in the namespace of the workload", "api-error: {verb: create, resource: pods, code: 500, namespace: gauntlet, name: coredns}",
			`name: found "coredns", but the workload has no such Pod; expected spare-0, spare-1 or web-*, or the field operator: {} for other controllers`},
		{"an owner in a patch", "watch-skip: {resource: pods, owner: Deployment/ghost}\n  - user-edit: {steps: [{patch: {kind: Pod, name: spare, merge: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: ghost, uid: x}]}}}}]}", ""},
		{"another kind than the owner in a patch", "watch-skip: {resource: pods, owner: Deployment/web}\n  - user-edit: {steps: [{patch: {kind: Pod, name: spare, merge: {metadata: {ownerReferences: [{apiVersion: v1, kind: Service, name: ghost, uid: x}]}}}}]}",
			`owner: found "Deployment/web", but a Deployment does not own pods itself; expected ReplicaSet/web-*`},
		{"a selector", "pod-churn: {action: delete, selector: app=wbe}",
			`selector: found "app=wbe", but no pod of the workload has the label app=wbe; expected app=spare or app=web; did you mean app=web?`},
		{"a selector of several values", "pod-churn: {action: delete, selector: 'app in (web, wbe), tier!=back'}", ""},
		{"a label of controllers", "pod-churn: {action: delete, selector: pod-template-hash}", ""},
		{"an unknown label", "pod-relabel: {label: tiers}",
			`label: found "tiers", but no pod of the workload has the label tiers; expected app or tier; did you mean tier?`},
		{"a known label", "pod-relabel: {label: tier}", ""},
		{"an unused resource", "watch-skip: {resource: statefulsets.apps}",
			`resource: found statefulsets.apps, which no controller under test uses; expected deployments.apps, endpoints, pods, replicasets.apps, replicationcontrollers, services, another controller in subject.controllers, or the field operator: {} for other controllers`},
		{"a resource that any program may use", "api-error: {verb: get, resource: configmaps, code: 500}", ""},
		{"a create of the user", "api-error: {verb: create, resource: deployments.apps, code: 500}",
			`verb: found the verb create for deployments.apps, which no controller under test creates; expected another verb or resource`},
		{"an update of the user", "api-error: {verb: update, resource: services, code: 500}",
			`verb: found the verb update for services, which no controller under test writes; expected another verb or resource`},
		{"a policy about objects of the user", "admission-denied: {resource: services}",
			`resource: found the verb create for services, which no controller under test creates; expected another verb or resource`},
		{"a policy about pods", "admission-denied: {resource: pods}", ""},
		{"a create of a ReplicaSet", "api-error: {verb: create, resource: replicasets.apps, code: 500}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			name, _, _ := strings.Cut(test.fault, ":")
			s, err := Parse("", []byte(workload+"faults:\n  - "+test.fault+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			want := "faults[0]." + name + "." + test.want
			if test.want == "" {
				want = "<nil>"
			}
			if got := fmt.Sprint(s.CheckReachable()); got != want {
				t.Errorf("error\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestSelectsOfOperators checks that CheckReachable accepts selections of objects that an operator may create.
func TestSelectsOfOperators(t *testing.T) {
	const text = `name: small
operator: {}
workload:
  - create: {kind: Deployment, name: web, replicas: 3}
faults:
  - watch-skip: {resource: pods, name: db-0, owner: StatefulSet/db}
  - api-error: {verb: create, resource: statefulsets.apps, code: 500, namespace: other}
  - pod-churn: {action: delete, selector: app=db}
  - pod-churn: {action: delete}
    when: {state: {resource: deployments.apps, name: other}}
`
	s, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckReachable(); err != nil {
		t.Error(err)
	}
}

// TestUnknownController checks that only the name of the controller is wrong, and not the faults about its objects.
func TestUnknownController(t *testing.T) {
	const text = "name: x\nsubject: {controllers: [deploymet]}\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 1}\nfaults:\n" +
		"  - api-error: {verb: create, resource: pods, code: 500}\n  - api-error: {verb: create, resource: replicasets.apps, code: 500}\n"
	const want = `x.yaml:2:25: subject.controllers[0]: found "deploymet"; expected `
	_, err := Parse("x.yaml", []byte(text), (*Scenario).CheckReachable)
	if got := fmt.Sprint(err); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
		t.Errorf("error\n got %s\nwant one line: %s…", got, want)
	}
}

// TestWordsInTexts checks that a word in a text does not switch off a check. A ConfigMap may have any text.
func TestWordsInTexts(t *testing.T) {
	const workload = "name: x\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: UNTIL}\n" +
		"  - create: {kind: Service, name: site, selector: {app: other}}\n    await: {until: served, within: 10s}\n"
	edit := func(step string) string { return "faults:\n  - user-edit: {steps: [{" + step + "}]}\n" }
	words := edit("create: {kind: ConfigMap, name: c, manifest: {data: {a: 'selector ports status: readinessGates ownerReferences'}}}")
	for _, test := range []struct{ name, until, faults, want string }{
		{"no faults", "scaled", "", "unserved"},
		{"only words", "scaled", words, "unserved"},
		{"words and a condition", "condition=Approved", words, "condition"},
		{"another selector", "scaled", edit("select: {kind: Service, name: site, selector: {app: web}}"), ""},
		{"a patch of the Service", "scaled", edit("patch: {kind: Service, name: site, merge: {spec: {selector: {app: web}}}}"), ""},
		{"a patch of another Service", "scaled", edit("patch: {kind: Service, name: kubernetes, merge: {spec: {selector: {app: web}}}}"), "unserved"},
		{"a status", "condition=Approved", edit("patch: {kind: Deployment, name: web, status: {conditions: []}}"), "unserved"},
		{"a readiness gate", "condition=Approved", edit("patch: {kind: Deployment, name: web, merge: {spec: {template: {spec: {readinessGates: []}}}}}"), "unserved"},
	} {
		s, err := Parse("x.yaml", []byte(strings.Replace(workload, "UNTIL", test.until, 1)+test.faults))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		texts := map[string]string{"unserved": "found served, but Service site never has addresses", "condition": "which a Deployment never has"}
		got := fmt.Sprint(s.CheckReachable())
		if want := texts[test.want]; (test.want == "") != (got == "<nil>") || !strings.Contains(got, want) {
			t.Errorf("%s: error %s; want %s", test.name, got, want)
		}
	}
}

func TestCheckGlob(t *testing.T) {
	const (
		regexp   = "; expected one glob such as web-*, not a regular expression or a list"
		negation = "; expected ^ instead of ! after [, such as [^a-c]"
	)
	for glob, want := range map[string]string{
		"web-*": "", "web-[^a-c]?": "", "web.example.com": "", "web.*": "", "*": "", "": "",
		"web-.*": regexp, "^web": regexp, "web-.+": regexp, "(web|shop)-x": regexp, "web,shop": regexp, ".*": regexp, "{web,shop}": regexp,
		"web-[!a]": negation,
	} {
		if err := CheckGlob(glob); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want …%s", glob, err, want)
		}
	}
}
