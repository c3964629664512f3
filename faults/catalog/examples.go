package catalog

// Examples maps the name of each fault type to an example in YAML. An example consists of one or
// more list items for the field `faults` of a scenario.
var Examples = map[string]string{
	"api-error": `- api-error: {verb: create, resource: pods, owner: ReplicaSet/web, code: 429, retryAfterSeconds: 1, every: 3}
  for: 5s`,
	"request-reset": `- request-reset: {verb: update, resource: deployments.apps, subresource: status, breaks: request, times: 5}`,
	"request-slow": `- request-slow: {verb: delete, resource: pods, delay: 200ms, jitter: 100ms}
  for: 5s`,
	"request-hang":  `- request-hang: {verb: create, resource: pods, nth: 4, within: 3s, then: pass}`,
	"response-slow": `- response-slow: {verb: patch, resource: deployments.apps, subresource: status, nth: 2, delay: 2s}`,
	"response-lost": `- response-lost: {verb: create, resource: pods, probability: 0.2, how: error, code: 504}
  for: 5s`,
	"watch-delay": `- watch-delay: {resource: pods, delay: 500ms}
  for: 5s`,
	"watch-stall": `- watch-stall: {resource: replicasets.apps}
  for: 5s`,
	"watch-end": `- watch-end: {resource: pods, how: expired, blind: 500ms, every: 2s}
  for: 10s`,
	"watch-skip":    `- watch-skip: {resource: deployments.apps, type: MODIFIED, name: web, nth: 2}`,
	"bookmark-loss": `- bookmark-loss: {resource: pods}`,
	"stale-list": `- stale-list: {resource: pods}
  for: 5s
- watch-end: {resource: pods, how: expired} # makes the subject list again
  from: 1s`,
	"random-order": `- random-order: {changes: 5}
  for: 10s`,
	"pod-churn": `- pod-churn: {action: delete, selector: app=web, every: 100ms, gracePeriodSeconds: 0}
  for: 5s`,
	"pod-relabel": `- pod-relabel: {label: app, downtime: 1s, every: 500ms, times: 5}`,
	"pod-disown":  `- pod-disown: {how: give, every: 500ms, times: 3}`,
	"pod-pending": `- pod-pending: {prefix: web-}
  for: 5s`,
	"restart": `- restart: {how: terminate, downtime: 500ms, times: 3, every: 2s}`,
	"crash": `- crash: {downtime: 500ms}
  when: {request: {verb: create, resource: pods, owner: ReplicaSet/web, nth: 3, phase: committed}}`,
	"freeze": `- freeze: {replica: leader}
  for: 20s`,
	"node-cordon": `- node-cordon: {count: 2}
  for: 5s`,
	"node-drain":         `- node-drain: {count: 1, patience: 10s}`,
	"node-taint":         `- node-taint: {count: 1, effect: NoExecute}`,
	"node-not-ready":     `- node-not-ready: {count: 1}`,
	"node-stop":          `- node-stop: {count: 1}`,
	"node-cut-off":       `- node-cut-off: {count: 1}`,
	"node-delete":        `- node-delete: {count: 1}`,
	"api-server-restart": `- api-server-restart: {downtime: 2s}`,
	"etcd-restart":       `- etcd-restart: {downtime: 2s}`,
	"etcd-compact": `- etcd-compact: {every: 200ms}
- api-server-restart: {downtime: 1s} # the new API server cannot serve compacted versions
  from: 1s`,
	"clock-skew": `- clock-skew: {ahead: -30s}`,
	"name-taken": `- name-taken: {owner: Deployment/app, template: other, times: 2}`,
	"quota-exhausted": `- quota-exhausted: {left: 3}
  for: 5s`,
	"admission-denied": `- admission-denied: {resource: pods, reason: Forbidden}
  for: 5s`,
	"namespace-terminating": `- namespace-terminating: {}
  from: 5s
  for: 5s`,
	"user-edit": `- user-edit:
    steps:
      - scale: {kind: ReplicaSet, name: web, replicas: 3}
  when: {request: {verb: create, resource: pods, owner: ReplicaSet/web, nth: 5}}`,
}
