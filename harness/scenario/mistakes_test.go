package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestParseReportsAll checks that an error has one line for each mistake in a file, in the order
// of the file. A mistake that follows from another one must have no line.
func TestParseReportsAll(t *testing.T) {
	const text = `name: Bad_name
cluster: {nodes: many, podStartDelay: 2m}
subject: {replicas: 9}
workload:
  - creat: {kind: ReplicaSet, name: web, replicas: 3}
  - scale: {kind: ReplicaSet, name: web, replicas: -1}
faults:
  - pod-churn: {}
    from: soon
    when: {request: {verb: creat}}
settle: {within: 1h}
`
	want := []string{
		`x.yaml:1:7: name: found "Bad_name"; expected a DNS label`,
		`x.yaml:2:18: cluster.nodes: found "many"; expected a whole number`,
		`x.yaml:2:39: cluster.podStartDelay: found 2m0s; expected a duration from 0s to 1m0s`,
		`x.yaml:3:21: subject.replicas: found 9; expected a number from 1 to 5`,
		`x.yaml:5:5: workload[0]: unknown field "creat"; expected after,`,
		`x.yaml:6:52: workload[1].scale.replicas: found -1; expected a number from 0 to 20000`,
		`x.yaml:9:11: faults[0].from: found "soon"; expected a duration such as`,
		`x.yaml:10:28: faults[0].when.request.verb: found "creat"; expected write,`,
		`x.yaml:11:18: settle.within: found 1h0m0s; expected a duration from 1s to 10m0s`,
		`x.yaml:8:5: pod-churn: from a further check`,
	}
	_, err := Parse("x.yaml", []byte(text), func(s *Scenario) error { return s.Faults[0].Errorf("from a further check") })
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	want[6], want[7], want[8], want[9] = want[9], want[6], want[7], want[8]
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), err)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d:\n got %s\nwant %s…", i+1, line, want[i])
		}
	}
}

// TestMissingObjects checks that an error names the missing objects of several steps. After a step
// whose own object is unknown, no object can be checked.
func TestMissingObjects(t *testing.T) {
	const (
		head    = "name: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
		missing = "  - scale: {kind: ReplicaSet, name: absent, replicas: 1}\n"
		absent  = "found ReplicaSet absent, but no earlier step creates this object; add a create step before this step"
	)
	for _, test := range []struct {
		name, steps string
		want        []string
	}{
		{"two", missing + missing, []string{absent, absent}},
		{"after another mistake", "  - scale: {kind: ReplicaSet, name: web, replicas: -1}\n" + missing, []string{"found -1; expected a number", absent}},
		{"in a step with another mistake", strings.Replace(missing, "1", "-1", 1), []string{absent, "found -1; expected a number"}},
		{"after an unreadable value", "  - scale: {kind: ReplicaSet, name: web, replicas: x}\n" + missing, []string{`found "x"; expected a whole number`, absent}},
		{"after an unknown operation", "  - creat: {kind: ReplicaSet, name: absent}\n" + missing, []string{`unknown field "creat"`}},
		{"after an invalid name", "  - create: {kind: ReplicaSet, name: Absent, replicas: 1}\n" + missing, []string{`found "Absent"; expected a DNS label`}},
		{"after an await of an invalid kind", "  - await: {kind: Foo, name: web, until: gone}\n" + missing, []string{`found "Foo"`}},
	} {
		_, err := Parse("x.yaml", []byte(head+test.steps))
		lines := strings.Split(fmt.Sprint(err), "\n")
		matches := slices.EqualFunc(lines, test.want, strings.Contains)
		if !matches {
			t.Errorf("%s:\n got %s\nwant %s", test.name, strings.Join(lines, "\n     "), strings.Join(test.want, "\n     "))
		}
	}
}

// TestConsequences checks that Parse reports a mistake, but not its consequences in other fields.
func TestConsequences(t *testing.T) {
	const (
		head    = "name: x\nworkload:\n"
		web     = "  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
		widget  = "  - create: {apiVersion: example.com/v1, kind: Widget, name: a, manifest: {spec: {}}}\n"
		watches = "controllers: [{name: a, kind: Widget, watches: [Widget], writes: [Widget]}]"
		deploy  = "  - create: {kind: Deployment, name: d, replicas: 1}\n"
		service = "  - create: {kind: Service, name: s}\n"
	)
	for _, test := range []struct{ name, text, want string }{
		{"an await beside a misspelled field", head + "  - create: {kind: ReplicaSet, naem: web, replicas: 1}\n    await: {until: available}\n", "naem"},
		{"an await beside a text", head + "  - create: 0\n    await: {until: available}\n", "create: found 0"},
		{"an await beside no kind", head + "  - create: {name: web}\n    await: {until: available}\n", "create.kind: found nothing"},
		{"an await beside a missing object", head + web + "  - scale: {kind: ReplicaSet, name: wbe, replicas: 1}\n    await: {until: available}\n", "scale.name: found ReplicaSet wbe"},
		{"a misspelled workload", "name: x\nwrokload:\n" + web + "exercises: [expectations]\n", `unknown field "wrokload"`},
		{"a misspelled name", "NAME: x\nworkload:\n" + web, `unknown field "NAME"`},
		{"a Pod", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", `x.yaml: found a file with "apiVersion", "kind" and "metadata"; expected a scenario`},
		{"configure without a kind", head + deploy + "  - configure: {name: d, strategy: RollingUpdate, maxSurge: 1, maxUnavailable: 0}\n", "configure.kind: found nothing"},
		{"a strategy that is a list", head + deploy + "  - configure: {kind: Deployment, name: d, strategy: [], maxSurge: 1, maxUnavailable: 0}\n", "configure.strategy: found a list"},
		{"no strategy", head + deploy + "  - configure: {kind: Deployment, name: d, maxSurge: 1, maxUnavailable: 0}\n", "configure.maxSurge: found 1 with strategy none"},
		{"minReadySeconds", head + deploy + "  - configure: {kind: Deployment, name: d, minReadySeconds: 1000, progressDeadlineSeconds: 30}\n", "configure.minReadySeconds: found 1000"},
		{"a text in operator.kinds", head + widget + "operator: {kinds: [x], " + watches + "}\n", `operator.kinds[0]: found "x"`},
		{"no operator.kinds", head + web + "operator: {" + watches + "}\n", `operator.controllers[0].kind: found "Widget"`},
		{"no apiVersion in operator.kinds", head + widget + "operator: {kinds: [{kind: Widget}]}\nfaults:\n  - x: {}\n    when: {request: {resource: widgets.example.com}}\n", "operator.kinds[0].apiVersion: found nothing"},
		{"matchExpressions without an operator", head + "  - create: {kind: ReplicaSet, name: web, replicas: 1, matchExpressions: [{key: a, values: [b]}]}\n", "operator: found nothing"},
		{"a label value", head + "  - create: {kind: ReplicaSet, name: web, replicas: 1, matchExpressions: [{key: app, operator: In, values: [web, ' ']}]}\n", "values[1]: found \" \""},
		{"a type that is a mapping", head + service + "  - publish: {name: s, type: {}, externalName: example.com}\n", "publish.type: found a mapping"},
		{"an empty port", head + service + "  - publish: {name: s, ports: [{port: 80}, null]}\n", "publish.ports[1]: found nothing"},
	} {
		_, err := Parse("x.yaml", []byte(test.text))
		if got := fmt.Sprint(err); strings.Contains(got, "\n") || !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestManyWrongValues checks that the validation of very many wrong values is short.
func TestManyWrongValues(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"unreadable values", "name: x\nworkload:\n" + strings.Repeat("  - a: 1\n", 25_000), "and 24950 more; the file has at least 25000 mistakes"},
		{"readable values", minimal + "subject: {controllers: [" + strings.Repeat("a,", 20_000) + "]}\n", "and 950 more; the file has at least 1000 mistakes"},
	} {
		_, err := Parse("x.yaml", []byte(test.text))
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: error %.100v, want %s", test.name, err, test.want)
		}
	}
}

// TestUnreadableParameters checks that a fault whose parameters are no mapping has no name. Other
// packages then do not report the parameters that it lacks.
func TestUnreadableParameters(t *testing.T) {
	var names []string
	_, err := Parse("x.yaml", []byte(minimal+"faults:\n  - api-error: []\n  - pod-churn: {}\n"), func(s *Scenario) error {
		for _, fault := range s.Faults {
			names = append(names, fault.Name)
		}
		return nil
	})
	if want := "x.yaml:6:16: faults[0].api-error: found a list; expected a mapping of parameters"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if want := []string{"", "pod-churn"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestManyMistakes checks that an error with very many mistakes lists only the first ones.
func TestManyMistakes(t *testing.T) {
	var errs []error
	for range linesMax + 3 {
		errs = append(errs, errors.New("mistake"))
	}
	want := strings.Repeat("mistake\n", linesMax) + "and 3 more; the file has 53 mistakes"
	if got := JoinErrors(errs...).Error(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestJoinErrors(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	if err := JoinErrors(nil, nil); err != nil {
		t.Errorf("no errors: got %v", err)
	}
	if err := JoinErrors(nil, first); err != first { //nolint:errorlint // JoinErrors must not wrap a single error
		t.Errorf("one error: got %v", err)
	}
	err := JoinErrors(JoinErrors(first, second), nil, first)
	if err.Error() != "first\nsecond\nfirst" || !errors.Is(err, second) {
		t.Errorf("three errors: got %q", err)
	}
}

// TestUnservedService checks which awaits of a Service CheckReachable refuses. It must refuse an await
// if the Service has no selector then.
func TestUnservedService(t *testing.T) {
	const (
		without = "  - create: {kind: Service, name: web}\n"
		pod     = "  - create: {kind: Pod, name: web}\n"
		with    = "  - create: {kind: Service, name: web, selector: {app: web}}\n"
		none    = `: found served, but Service web never has addresses, because no pod of the workload has `
		await   = "  - await: {kind: Service, name: web, until: served}\n"
		want    = `: found served, but Service web has no selector, so it never has addresses; expected a selector in the step that creates it, such as selector: {app: web}`
	)
	for _, test := range []struct{ name, steps, want string }{
		{"in the same step", "  - create: {kind: Service, name: web}\n    await: {until: served}\n", "x.yaml:4:20: workload[0].await.until" + want},
		{"in a later step", without + await, "x.yaml:4:46: workload[1].await.until" + want},
		{"with a selector", pod + with + await, ""},
		{"no pod", with + await, "x.yaml:4:46: workload[1].await.until" + none + "the label app=web; expected a step that creates a pod with this label"},
		{"no replicas", "  - create: {kind: Deployment, name: web, replicas: 0}\n" + with + await, "x.yaml:5:46: workload[2].await.until" + none + "the label app=web; expected a step that creates a pod with this label"},
		{"replicas later", "  - create: {kind: Deployment, name: web, replicas: 0}\n" + with + "  - scale: {kind: Deployment, name: web, replicas: 2}\n" + await, ""},
		{"pods of a Job", "  - create: {kind: Job, name: web, manifest: {spec: {template: {metadata: {labels: {app: web}}}}}}\n" + with + await, ""},
		{"pods of another user", with + await + "faults:\n  - user-edit: {steps: [{create: {kind: Pod, name: web}}]}\n", ""},
		{"another pod", "  - create: {kind: Pod, name: wbe}\n" + with + await, "x.yaml:5:46: workload[2].await.until" + none + "the label app=web; expected app=wbe"},
		{"another port", pod + "  - create: {kind: Service, name: web, selector: {app: web}, ports: [{port: 80, targetPort: htpp}]}\n" + await,
			"x.yaml:5:46: workload[2].await.until" + none + "a TCP port with the name htpp; expected the targetPort http or metrics; did you mean http?"},
		{"another protocol", pod + "  - create: {kind: Service, name: web, selector: {app: web}, ports: [{port: 80, targetPort: http, protocol: UDP}]}\n" + await,
			"x.yaml:5:46: workload[2].await.until: found served, but Service web never has addresses, because the port http of the pods is not a UDP port; expected the protocol TCP, or a number as the targetPort"},
		{"a port of a manifest", "  - create: {kind: Job, name: web, manifest: {spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, ports: [{name: htpp, containerPort: 80}]}]}}}}}\n" +
			"  - create: {kind: Service, name: web, selector: {app: web}, ports: [{port: 80, targetPort: htpp}]}\n" + await, ""},
		{"select", pod + without + "  - select: {name: web, selector: {app: web}}\n" + await, ""},
		{"select of nothing", with + "  - select: {name: web, selector: {}}\n" + await, "x.yaml:5:46: workload[2].await.until" + want},
		{"patch", without + "  - patch: {kind: Service, name: web, merge: {spec: {selector: {app: web}}}}\n" + await, ""},
		{"patch of the addresses", without + "  - create: {kind: Endpoints, name: web}\n  - patch: {kind: Endpoints, name: web, merge: {subsets: []}}\n" + await, ""},
		{"another user", without + await + "faults:\n  - user-edit: {steps: [{select: {name: web, selector: {app: web}}}]}\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte("name: small\nworkload:\n"+test.steps))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.CheckReachable(); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestCheckReachable checks the error of CheckReachable for one trigger in each case. An empty
// error means that the trigger can match.
func TestCheckReachable(t *testing.T) {
	const workload = `name: small
workload:
  - create: {kind: Deployment, name: web, replicas: 3}
  - create: {kind: ReplicationController, name: legacy, replicas: 2}
faults:
`
	one := func(trigger string) string { return "  - pod-churn: {}\n    when: " + trigger + "\n" }
	for _, test := range []struct{ name, faults, want string }{
		{"a subresource", one("{request: {verb: update, resource: pods, subresource: status}}"), ""},
		{"an unknown subresource", one("{request: {verb: update, resource: pods, subresource: statsu}}"),
			`x.yaml:7:65: faults[0].when.request.subresource: found "statsu"; expected attach, binding, ephemeralcontainers, eviction, exec, log, portforward, proxy, resize or status; did you mean status?`},
		{"a resource without subresources", one("{request: {resource: endpoints, subresource: status}}"),
			`x.yaml:7:56: faults[0].when.request.subresource: found "status"; expected none, because endpoints have no subresources`},
		{"a ReplicaSet of a Deployment", one("{request: {owner: ReplicaSet/web-*}}"), ""},
		{"any ReplicaSet", one("{request: {owner: ReplicaSet/*}}"), ""},
		{"any kind", one("{request: {owner: '*/nothing'}}"), ""},
		{"no such ReplicaSet", one("{event: {resource: pods, owner: ReplicaSet/wbe-*}}"),
			`x.yaml:7:43: faults[0].when.event.owner: found "ReplicaSet/wbe-*", but the workload has no such ReplicaSet; expected web-*`},
		{"an owner of the wrong kind", one("{state: {resource: pods, owner: ReplicationController/web}}"),
			`x.yaml:7:43: faults[0].when.state.owner: found "ReplicationController/web", but the workload has no such ReplicationController; expected legacy, or the field operator: {} for other controllers`},
		{"an unknown kind of owner", one("{request: {owner: Replicaset/web-*}}"),
			`x.yaml:7:29: faults[0].when.request.owner: found the unknown kind "Replicaset"; expected the kind of an owner, such as ReplicaSet; did you mean ReplicaSet?`},
		{"two Deployments", one("{state: {resource: deployments.apps, atLeast: 2}}"),
			`x.yaml:7:57: faults[0].when.state.atLeast: found 2 of deployments.apps, so the trigger never matches; expected at most 1, because the workload creates no more`},
		{"the name of a counted object", one("{state: {resource: deployments.apps, name: wbe}}"),
			`x.yaml:7:54: faults[0].when.state.name: found "wbe", but the workload has no such Deployment; expected web`},
		{"after another trigger", one("{request: {}, after: {state: {resource: pods, atLeast: 500}}}"),
			`x.yaml:7:66: faults[0].when.after.state.atLeast: found 500 of pods, so the trigger never matches; expected at most 12, because the workload creates no more`},
		{"as many pods as a rollout may have", one("{state: {resource: pods, atLeast: 12}}"), ""},
		{"a fault whose owner exists", "  - api-error: {verb: create, resource: pods, code: 500, owner: ReplicaSet/web-*}\n  - name-taken: {owner: Deployment/*}\n", ""},
		{"an owner that is not a workload", "  - api-error: {verb: create, resource: pods, code: 500, owner: ConfigMap/*}\n", ""},
		{"a fault whose owner cannot exist", "  - api-error: {verb: create, resource: pods, code: 500, owner: Deployment/wbe}\n",
			`x.yaml:6:65: faults[0].api-error.owner: found "Deployment/wbe", but a Deployment does not own pods itself; expected ReplicaSet/wbe-*`},
		{"a fault whose kind of owner cannot exist", "  - watch-skip: {resource: pods, owner: Job/*}\n",
			`x.yaml:6:41: faults[0].watch-skip.owner: found "Job/*", but the workload has no such Job; expected one that a step creates, or the field operator: {} for other controllers`},
		{"edits of objects that may exist", "  - user-edit: {steps: [{delete: {kind: Pod, name: legacy-x7fgt}}, {delete: {kind: Pod, name: web-5d-x}}, {scale: {kind: ReplicaSet, name: web-5d, replicas: 1}}]}\n", ""},
		{"edits of objects of another user", "  - user-edit: {steps: [{create: {kind: Service, name: shop}}]}\n  - user-edit: {steps: [{delete: {kind: Service, name: shop}}, {delete: {kind: Endpoints, name: shop}}]}\n", ""},
		{"edits of objects that cannot exist", "  - user-edit: {steps: [{delete: {kind: Service, name: web}}, {scale: {kind: ReplicaSet, name: wbe, replicas: 1}}]}\n",
			"x.yaml:6:56: faults[0].user-edit.steps[0].delete.name: found \"Service web\", but the workload has no such Service; expected one that a step creates, or the field operator: {} for other controllers\n" +
				"x.yaml:6:96: faults[0].user-edit.steps[1].scale.name: found \"ReplicaSet wbe\", but the workload has no such ReplicaSet; expected web-*, or the field operator: {} for other controllers"},
		{"a verb that status does not have", one("{request: {verb: create, resource: pods, subresource: status}}"),
			`x.yaml:7:65: faults[0].when.request.subresource: found status with the verb create, which no request has; expected the verb get, update or patch`},
		{"a create of a subresource", one("{request: {verb: create, resource: pods, subresource: binding}}"), ""},
		{"a step after a later step", one("{step: {index: 0, at: begun}, after: {step: {index: 0, at: done}}}"),
			`x.yaml:7:18: faults[0].when.step: found a trigger on step 0, begun, which must match after step 0, done; expected a later step, because each step begins and ends once`},
		{"a step after an earlier step", one("{step: {index: 1, at: begun}, after: {step: {index: 0, at: done}}}"), ""},
		{"until an earlier step", one("{step: {index: 0, at: done}}") + "    until: {step: {index: 0, at: begun}}\n",
			`x.yaml:8:12: faults[0].until: found a trigger on step 0, begun, but the fault begins after step 0, done; expected a later step`},
		{"until a later step", one("{step: {index: 0, at: done}}") + "    until: {step: {index: 1, at: begun}}\n", ""},
		{"until the first step, without when", "  - pod-churn: {}\n    until: {step: {index: 0, at: begun}}\n",
			`x.yaml:7:19: faults[0].until.step: found the beginning of step 0, but the fault begins later; expected a later step, or at: done`},
		{"times with a step", one("{step: {index: 0}}") + "    times: 5\n",
			`x.yaml:8:12: faults[0].times: found 5, but the trigger of the fault matches once, because each step begins and ends once; remove the field times`},
		{"an edit that creates what the workload creates", "  - user-edit: {steps: [{create: {kind: Deployment, name: web, replicas: 1}}]}\n",
			`x.yaml:6:59: faults[0].user-edit.steps[0].create.name: found Deployment web, which the workload creates, too; use another name, or delete the object first`},
		{"an edit that creates an object again", "  - user-edit: {steps: [{delete: {kind: Deployment, name: web}}, {create: {kind: Deployment, name: web, replicas: 1}}]}\n", ""},
		{"a chain of faults", "  - pod-churn: {}\n  - pod-churn: {}\n    when: {fault: {index: 0}}\n", ""},
		{"a circle of faults", "  - pod-churn: {}\n    when: {request: {}, after: {fault: {index: 1}}}\n  - pod-churn: {}\n    when: {fault: {index: 0}}\n",
			"x.yaml:7:11: faults[0].when: found a cycle of faults that wait for each other: faults[0] waits for faults[1], which waits for faults[0], directly or through other faults; remove one of these triggers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte(workload+test.faults))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.CheckReachable(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestImpossibleSteps checks the error of CheckReachable for one workload in each case. An empty error
// means that the steps are possible.
func TestImpossibleSteps(t *testing.T) {
	const external = "  - create: {kind: Service, name: web, externalName: example.com}\n"
	const held = "  - create: {kind: Deployment, name: web, replicas: 1, version: v1}\n  - pause: {name: web}\n"
	for _, test := range []struct{ name, steps, want string }{
		{"a namespace of every cluster", "  - create: {kind: Namespace, apiVersion: v1, name: kube-system, manifest: {}}\n",
			"workload[0].create.name: found Namespace kube-system, which exists before the workload; use another name"},
		{"another namespace", "  - create: {kind: Namespace, apiVersion: v1, name: mine, manifest: {}}\n", ""},
		{"another node", "  - create: {kind: Node, apiVersion: v1, name: node-77, manifest: {}}\n", ""},
		{"no ports", external + "  - publish: {kind: Service, name: web, type: NodePort}\n",
			"workload[1].publish.type: found NodePort without the field ports, but Service web has no ports; expected at least one port in the field ports"},
		{"ports", external + "  - publish: {kind: Service, name: web, type: NodePort, ports: [{port: 80}]}\n", ""},
		{"ports that were removed", "  - create: {kind: Service, name: web, selector: {app: web}}\n  - publish: {kind: Service, name: web, type: ExternalName, externalName: example.com, ports: []}\n  - publish: {kind: Service, name: web, type: ClusterIP}\n",
			"workload[2].publish.type: found ClusterIP without the field ports, but Service web has no ports; expected at least one port in the field ports"},
		{"ports that stay", "  - create: {kind: Service, name: web, selector: {app: web}}\n  - publish: {kind: Service, name: web, type: NodePort}\n", ""},
		{"an unknown status", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: condition=Available=Maybe}\n",
			`workload[0].await.until: found the status "Maybe"; expected True, False or Unknown`},
		{"a misspelled condition", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: condition=ReplicasFailure}\n",
			`workload[0].await.until: found the condition "ReplicasFailure", which a Deployment never has; expected Available, Progressing or ReplicaFailure; did you mean ReplicaFailure?`},
		{"a condition that no client sets", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: condition=Approved}\n",
			`workload[0].await.until: found the condition "Approved", which a Deployment never has; expected Available, Progressing or ReplicaFailure, or the field operator: {} for other controllers`},
		{"a condition of another client", "  - create: {kind: Deployment, name: web, replicas: 1}\n  - patch: {kind: Deployment, name: web, status: {conditions: [{type: Approved, status: 'True'}]}}\n    await: {until: condition=Approved}\n", ""},
		{"a condition of another controller", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: condition=Approved}\noperator: {}\n", ""},
		{"a condition of another kind", "  - create: {kind: ReplicaSet, name: web, replicas: 1}\n    await: {until: condition=Available}\n",
			`workload[0].await.until: found the condition "Available", which a ReplicaSet never has; expected ReplicaFailure; did you mean until: available?`},
		{"a complete rollout of a paused Deployment", held + "  - rollout: {name: web, version: v2}\n    await: {until: complete}\n",
			`workload[2].await.until: found complete, but workload[1] pauses Deployment web, so that the rollout of workload[2] does not begin; add a resume step before this await`},
		{"a resumed Deployment", held + "  - rollout: {name: web, version: v2}\n  - resume: {name: web}\n    await: {until: complete}\n", ""},
		{"a paused Deployment without replicas", held + "  - rollout: {name: web, version: v2, replicas: 0}\n    await: {until: complete}\n", ""},
		{"a paused Deployment with the same version", held + "  - rollout: {name: web, version: v1}\n    await: {until: complete}\n", ""},
		{"a scaled paused Deployment", held + "  - scale: {kind: Deployment, name: web, replicas: 2}\n    await: {until: complete}\n", ""},
		{"a patch of the selector", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {selector: {matchLabels: {app: x}}}}}\n",
			`workload[2].patch.merge.spec.selector.matchLabels.app: found "x"; expected web, because the selector of a Deployment cannot change`},
		{"a patch of selected labels", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {template: {metadata: {labels: {app: null}}}}}}\n",
			`workload[2].patch.merge.spec.template.metadata.labels.app: found nothing; expected web, because the selector of the Deployment must match the labels`},
		{"a patch of other labels", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {template: {metadata: {labels: {tier: a}}}}}}\n", ""},
		{"a patch with an incomplete container", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {template: {spec: {containers: [{image: a}]}}}}}\n",
			`workload[2].patch.merge.spec.template.spec.containers[0]: found a container without name; expected its name and image, because a merge patch replaces the whole list`},
		{"a patch with a container", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}}\n", ""},
		{"a patch with a misspelled strategy", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {strategy: {type: Recreat}}}}\n",
			`workload[2].patch.merge.spec.strategy.type: found "Recreat"; expected RollingUpdate or Recreate; did you mean Recreate?`},
		{"a patch with a strategy", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {strategy: {type: Recreate, rollingUpdate: null}}}}\n", ""},
		{"a patch with negative seconds", held + "  - patch: {kind: Deployment, name: web, merge: {spec: {minReadySeconds: -5}}}\n",
			`workload[2].patch.merge.spec.minReadySeconds: found -5; expected at least 0`},
		{"a patch with a misspelled type of a Service", external + "  - patch: {kind: Service, name: web, merge: {spec: {type: NodePrt}}}\n",
			`workload[1].patch.merge.spec.type: found "NodePrt"; expected ClusterIP, NodePort, LoadBalancer or ExternalName; did you mean NodePort?`},
		{"a patch with a type of a Service", external + "  - patch: {kind: Service, name: web, merge: {spec: {type: LoadBalancer, ports: [{port: 80}]}}}\n", ""},
		{"minReadySeconds that exceed the default deadline", held + "  - configure: {kind: Deployment, name: web, minReadySeconds: 600}\n",
			`workload[2].configure: found minReadySeconds 600 for a Deployment whose progressDeadlineSeconds is 600; expected a progressDeadlineSeconds that is larger`},
		{"minReadySeconds below the default deadline", held + "  - configure: {kind: Deployment, name: web, minReadySeconds: 599}\n", ""},
		{"minReadySeconds with a deadline", held + "  - configure: {kind: Deployment, name: web, minReadySeconds: 600, progressDeadlineSeconds: 700}\n", ""},
		{"the absence of a name", held + "    await: {until: 'no jsonpath={.metadata.name}'}\n",
			`workload[1].await.until: found "no jsonpath={.metadata.name}", but every object has this field; expected a field that the subject removes, or until: gone`},
		{"the absence of an annotation", held + "    await: {until: 'no jsonpath={.metadata.annotations.a}'}\n", ""},
		{"a condition of a readiness gate", "  - create: {kind: Pod, name: web}\n    await: {until: condition=example.com/ready}\n", ""},
		{"a kind without a status", "  - create: {kind: Endpoints, name: web}\n    await: {until: condition=Ready}\n",
			`workload[0].await.until: found "condition=Ready", but the kind Endpoints has no conditions; expected gone`},
		{"a text for a number", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: 'jsonpath={.status.replicas}=all'}\n",
			`workload[0].await.until: found "jsonpath={.status.replicas}=all" for a Deployment: the field is a whole number; expected a whole number instead of all`},
		{"a number", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: 'jsonpath={.status.replicas}=1'}\n", ""},
		{"a text for a boolean", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: 'jsonpath={.spec.paused}=yes'}\n",
			`workload[0].await.until: found "jsonpath={.spec.paused}=yes" for a Deployment: the field is a boolean; expected true or false instead of yes`},
		{"a text for a mapping", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: 'jsonpath={.status}=1'}\n",
			`workload[0].await.until: found "jsonpath={.status}=1" for a Deployment: the field has the type object; expected the path of a text, a number or a boolean`},
		{"a misspelled phase", "  - create: {kind: Pod, name: web}\n    await: {until: 'jsonpath={.status.phase}=Runnning'}\n",
			`workload[0].await.until: found "jsonpath={.status.phase}=Runnning" for a Pod: the field never has the value Runnning; expected Pending, Running, Succeeded, Failed or Unknown; did you mean Running?`},
		{"a text or number", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: 'jsonpath={.spec.strategy.rollingUpdate.maxSurge}=25%'}\n", ""},
		{"a condition by a filter", "  - create: {kind: Pod, name: web}\n    await: {until: 'jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True'}\n", ""},
		{"a status in lower case", "  - create: {kind: Deployment, name: web, replicas: 1}\n    await: {until: condition=Available=false}\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte("name: small\nworkload:\n"+test.steps))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.CheckReachable(); err != nil {
				_, got, _ = strings.Cut(err.Error(), ": ")
			}
			if got != test.want {
				t.Errorf("error\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestValues checks that values of fields that a run would use only late are wrong before the run.
func TestValues(t *testing.T) {
	const head = "name: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
	for text, want := range map[string]string{
		"  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: 1.5}}}\n":                            "merge.spec.replicas: found 1.5; expected a number from 0 to 20000",
		"  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: 99999999999999999999999}}}\n":        "merge.spec.replicas: found 99999999999999999999999; expected a number from 0 to 20000",
		"  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: '3'}}}\n":                            "merge.spec.replicas: found \"3\"; expected a number from 0 to 20000",
		"  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: null}}}\n":                           "",
		"  - create: {kind: StatefulSet, name: c, manifest: {spec: {replicas: x}}}\n":                           "manifest.spec.replicas: found \"x\"; expected a number from 0 to 20000",
		"  - create: {apiVersion: example.com/v1, kind: Web, name: c, manifest: {spec: {replicas: x}}}\n":       "",
		"  - create: {kind: Eviction, apiVersion: policy/v1, name: c, manifest: {}}\n":                          "create.kind: found Eviction, which is no resource of the API; expected a kind",
		"  - create: {kind: PodList, apiVersion: v1, name: c, manifest: {}}\n":                                  "create.kind: found PodList, which is no resource of the API; expected a kind",
		"  - create: {kind: AllowList, apiVersion: example.com/v1, name: c, manifest: {}}\n":                    "",
		"  - create: {kind: SubjectAccessReview, apiVersion: authorization.k8s.io/v1, name: c, manifest: {}}\n": "",
		"  - label: {kind: ReplicaSet, name: web, remove: [a, a]}\n":                                            "label.remove[1]: found the key a twice; expected each key once",
		"faults:\n  - x: {}\n    when: {request: {verb: get, phase: committed}}\n":                              "found committed with the verb get, which commits nothing",
		"faults:\n  - x: {}\n    when: {request: {verb: create, owner: /web}}\n":                                `request.owner: found "/web"; expected a kind and a name`,
	} {
		_, err := Parse("x.yaml", []byte(head+text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", text, err, want)
		}
	}
}

// TestUnknownObjects checks that CheckReachable accepts faults about objects that other programs may
// create.
func TestUnknownObjects(t *testing.T) {
	const faults = "faults:\n  - watch-skip: {resource: pods, owner: Job/*}\n  - user-edit: {steps: [{delete: {kind: ReplicaSet, name: other}}]}\n"
	for _, rest := range []string{
		"  - create: {kind: Notebook, apiVersion: example.com/v1, name: a, manifest: {spec: {}}}\n",
		"  - create: {kind: ReplicaSet, name: a, replicas: 1}\noperator: {controllers: [{name: a, kind: ReplicaSet}]}\n",
		"  - create: {kind: ReplicaSet, name: other, replicas: 1}\n  - create: {kind: CronJob, name: a, manifest: {spec: {}}}\n",
	} {
		s, err := Parse("x.yaml", []byte("name: x\nworkload:\n"+rest+faults))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckReachable(); err != nil {
			t.Errorf("%s: %v", rest, err)
		}
	}
}
