package scenario

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// anyField is the key of an advice about every other field.
const anyField = "*"

// fieldAdvice says what to write instead of unknown fields. The keys are the names of Go types, and of fields that
// users know from Kubernetes, kubectl or other tools. An advice that is one word is the name of another field.
var fieldAdvice = map[string]map[string]string{
	"Scenario": {"steps": "workload", "operations": "workload", "chaos": "faults", "timeout": "write settle: {within: 1m}", "nodes": "write cluster: {nodes: 4}", "checks": "exercises", "metadata": "write name without metadata", "provider": "use the flag --provider"},
	"Step": {
		"within": "write within below await", "timeout": "write within below await", "until": "write until below await", "sleep": "after", "wait": "await",
		"apply": "create", "update": "patch", "replace": "patch", "edit": "patch", "set": "rollout", "restart": "rollout", "undo": "rollback", "expose": "create",
		"autoscale": "scale", "remove": "delete", "kind": "write kind below an operation such as create", "name": "write name below an operation such as create",
	},
	"Await": {
		"for": "until", "timeout": "within", "condition": "write until: condition=TYPE", "jsonpath": "write until: jsonpath={EXPRESSION}=VALUE",
		"selector": "name one object, such as the Deployment", "labels": "name one object, such as the Deployment", "count": "await a condition such as scaled",
	},
	"Create": {
		"metadata": "write name and labels without metadata, and a field of spec such as replicas without spec", "spec": "write its fields without spec, or a manifest for another kind",
		"template": "write labels for its labels; gauntlet writes the rest", "image": "gauntlet chooses the image; write version for another template",
		"containers": "gauntlet writes the containers; use the operation patch to change them", "namespace": "every object is in the namespace of the run; remove the field",
		"annotations": "use the operation annotate", "type": "use the operation publish, or externalName or headless", "clusterIP": "write headless: true for clusterIP: None",
		"matchLabels": "selector", "strategyType": "strategy", "data": "write data below manifest", "rollingUpdate": "write maxSurge and maxUnavailable without rollingUpdate",
	},
	"Rollout":  {"image": "gauntlet chooses the image; write version for another template", "revision": "version", "to": "version", "template": "version"},
	"Rollback": {"to": "revision", "toRevision": "revision", "version": "revision"},
	"Delete":   {"cascade": "propagation", "propagationPolicy": "propagation", "gracePeriodSeconds": "only the fault pod-churn has gracePeriodSeconds"},
	"Scale":    {"to": "replicas", "count": "replicas", "size": "replicas"},
	"Patch": {
		"spec": "write spec below merge", "metadata": "write metadata below merge", "patch": "write the fields to change below merge; every patch is a JSON merge patch", "body": "merge", "data": "merge",
		"type": "every patch is a JSON merge patch; remove the field",
	},
	"Port":           {"containerPort": "targetPort", "number": "port", "nodePort": "the API server chooses the nodePort; remove the field"},
	"Label":          {"add": "labels", "set": "labels", anyField: "write it below labels"},
	"Annotate":       {"add": "annotations", "set": "annotations", "labels": "annotations", anyField: "write it below annotations"},
	"Configure":      {"replicas": "use the operation scale"},
	"Settle":         {"timeout": "within", "for": "quiet"},
	"Cluster":        {"workers": "nodes", "size": "nodes", "provider": "use the flag --provider", "version": "the provider chooses the version; remove the field"},
	"Subject":        {"count": "replicas", "instances": "replicas", "image": "use the flag --subject", "exec": "use the flag --subject", "module": "use the flag --subject"},
	"Trigger":        {"resource": "write it below request, event or state", "verb": "write it below request", "type": "write it below event", "is": "write it below state", "time": "write from beside the fault", "index": "write it below step or fault"},
	"RequestTrigger": {"type": "verb", "times": "nth"},
	"EventTrigger":   {"verb": "type", "times": "nth"},
	"StateTrigger":   {"state": "is"},
	"StepTrigger":    {"step": "index", "when": "at", "number": "index"},
}

// sameMistake has the unknown fields about which there is no error beside another unknown field. The keys have the form TYPE.FIELD.
var sameMistake = map[string]string{"Create.spec": "metadata", "Patch.type": "patch"}

// faultAdvice is like [fieldAdvice], for the fields beside a fault.
var faultAdvice = map[string]string{
	"duration": "for", "within": "for", "at": "from", "after": "from", "start": "from", "begin": "from", "delay": "from", "end": "until", "trigger": "when", "on": "when",
	"if": "when", "count": "times", "repeat": "times", "required": "mustFire",
}

// advised returns the end of an error about an unknown field of a struct. It has an advice or a similar name, or is "".
func advised(of reflect.Type, field string, known []string) string {
	advice := fieldAdvice[of.Name()]
	suggestion := cmp.Or(asAdvice(advice[field]), similar(field, known))
	for _, synonym := range synonyms[field] {
		if suggestion == "" && slices.Contains(known, synonym) {
			suggestion = asAdvice(synonym)
		}
	}
	return cmp.Or(suggestion, asAdvice(advice[anyField]))
}

// synonyms has names of parameters, by other words for them. The first one that a struct has is meant.
var synonyms = map[string][]string{
	"interval": {"every"}, "period": {"every"}, "count": {"times", "nth", "atLeast"}, "repeat": {"times"}, "max": {"times", "atMost"}, "min": {"atLeast"},
	"name": {"selector"}, "labels": {"selector"}, "pod": {"selector"}, "by": {"ahead"}, "skew": {"ahead"}, "offset": {"ahead"}, "pods": {"left", "selector"},
	"limit": {"left", "times"}, "timeout": {"within", "downtime", "delay", "after"}, "duration": {"delay", "downtime", "within", "after"}, "latency": {"delay"},
	"status": {"code"}, "error": {"code"}, "statusCode": {"code"}, "kind": {"resource"}, "object": {"resource"}, "method": {"verb"}, "operation": {"verb"},
	"node": {"count"}, "nodes": {"count"}, "chance": {"probability"}, "rate": {"probability"}, "percent": {"probability"}, "mode": {"how", "action"},
	"type": {"how", "action"}, "signal": {"how"}, "target": {"replica"}, "instance": {"replica"}, "key": {"label"}, "grace": {"gracePeriodSeconds"},
}

// asAdvice returns an advice as the end of an error. An advice of one word is the name of a field.
func asAdvice(advice string) string {
	switch {
	case advice == "":
		return ""
	case strings.Contains(advice, " "):
		return "; " + advice
	}
	return "; did you mean " + advice + "?"
}
