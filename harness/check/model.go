package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Model is what the records up to some point of a history add up to. It is
// brought up to date once for each record, before the judges see that record.
// It grows with the objects and calls that are alive, not with the history.
type Model struct {
	facts     *decoder
	setting   Settings
	processes map[string]*process // the living, by name
	dead      map[string]bool     // the names of those that ended and have not started again
	calls     map[uint64]*call    // in flight
	streams   map[uint64]*stream  // watches, and lists of which an answer is due

	truth *world
	start history.Start
	phase history.PhaseName

	// lived is how far behind the present each process is that was ever paused.
	lived map[string]*hibernation

	// What the current record means. At is when it happened by the clock of the
	// process that it concerns, which stands still while the process does; now is
	// by everybody else's.
	at, now  time.Duration
	seq      int64
	sent     *call     // a call was sent
	roused   *process  // with that call a process ended an idle spell
	answered *answer   // a call was answered
	touched  []touched // the view of an owner changed
	wakes    []wake    // there was news of something
	died     *process  // a process died
}

// answer is a call with its answer.
type answer struct {
	*call
	response *history.Response
}

// touched is an owner of whom a process was just told something.
type touched struct {
	*ledger
	itself bool // something about the owner itself, not only about pods
}

// wake is news that may have put a key on a work queue.
type wake struct {
	item
	itself bool // news of the object itself
}

// item is a key of one of a process' work queues: an owner of pods or a
// Deployment by its UID, a Service by its name.
type item struct {
	process *process
	uid     types.UID
	service objectName
}

// process is one life of one instance of the subject. A restart begins another:
// nothing that a process knew or waited for outlives it.
type process struct {
	name    string
	ended   bool
	view    *view
	ledgers map[types.UID]*ledger // by owner
	// rollouts are the accounts with Deployments, publications those with Services.
	rollouts     map[types.UID]*rollout
	publications map[objectName]*publication
	// leftovers is the Endpoints that had no Service when the process began; nil
	// until it has been told of all there is.
	leftovers map[types.UID]bool

	// rest is for how long it must do nothing to count as idle.
	rest time.Duration
	// drain is in what time a whole batch gets past its client's rate limit: a
	// decision about one object is no older than that, when no call is under way.
	drain   time.Duration
	working int           // calls in flight that are part of its work
	lastAt  time.Duration // when it last sent such a call or was answered
	// naps is the calls that the client may be about to repeat by itself, with
	// the controller none the wiser, and since when (trap 13).
	naps map[string]time.Duration
	// spells counts the times that it was idle; rousedAt is when that last ended.
	spells   int
	rousedAt time.Duration
	// sweptAt is when it was last seen to that nothing is kept of pods for longer than
	// memory: a process may never be idle.
	sweptAt time.Duration

	// deleting is for which owner the process deletes each pod that its view
	// shows active. The view may show the pod to be another's when it goes.
	deleting map[types.UID]*ledger
	// adopted is the owner of each pod that the process was told it adopted,
	// before its view shows so.
	adopted map[types.UID]types.UID
	// reads is the last answered live read of each owner.
	reads map[types.UID]liveRead
	// tenure is how it stands with the lease.
	tenure tenure
	// leaseLost is when a call for a lease last failed, or a leader that could not renew
	// it in time ended without an answer to one; leaseFailed, whether any has.
	leaseLost   time.Duration
	leaseFailed bool
}

// call is a request that is part of the subject's work.
type call struct {
	process     *process
	id          uint64
	seq         int64 // of the request's record
	at          time.Duration
	verb        callVerb
	key         string          // equal for the same request sent again
	item        item            // the key of a work queue that it is part of; zero if none can be told
	ledger      *ledger         // of the owner whose pods it is for; nil if none can be told
	rollout     *rollout        // of the Deployment that it is for; nil if it is for none
	scaling     *scaling        // what it does to a ReplicaSet; nil if that keeps its replicas
	from        history.Version // of a ReplicaSet, that it was written from
	publication *publication    // of the Endpoints that it writes; nil if it writes none
	pod         *pod            // that it deletes or claims, as the process has it; nil if never shown
	claim       claim           // of callClaim

	update     *update         // what it updates; nil if it is another call
	writes     bool            // of callLease: it writes the lease
	effectSeen bool            // of callDelete: the pod left the view before the answer
	made       history.Version // of callCreate: the pod's first version
	unsaid     bool            // of callStatus: it is the first to report a failure, or should be
}

const (
	callOther  callVerb = iota
	callLease           // anything about leases: not work
	callCreate          // creates a pod for an owner
	callDelete          // deletes a pod
	callClaim           // writes a pod: adopts or releases it
	callStatus          // writes an owner
	callRead            // reads an owner live
)

// world is a set of objects as someone has them: the truth, or the view of one
// process. It keeps count of each owner's pods, so that no check has to.
type world struct {
	pods        map[types.UID]*pod
	owners      map[types.UID]*owner
	deployments map[types.UID]*deployment
	services    map[types.UID]*service
	endpoints   map[types.UID]*endpoints
	names       map[objectName]types.UID

	controlled map[types.UID]map[types.UID]*pod   // by the UID of the controller
	orphans    map[string]map[types.UID]*pod      // by namespace
	tallies    map[types.UID]*tally               // of each owner
	sets       map[types.UID]map[types.UID]*owner // by the UID of the controller

	// touched is the owners whose own version, pods or matching orphans have
	// changed since it was last cleared, and how; and the Deployments of which
	// that is true or one of whose ReplicaSets has changed.
	touched map[types.UID]touch
	// published is the same of Services, by name: their own versions, their pods
	// and their Endpoints.
	published map[objectName]touch
	// addresses is how each pod is reached, of the truth only.
	addresses map[types.UID]*address
	// bereft is the Services that were deleted while they had Endpoints, which
	// are still there.
	bereft map[objectName]bool
	// departed is the pods that have ceased to be active in the same time.
	departed []types.UID
}

// touch is how an owner was touched.
type touch struct {
	itself   bool        // by a version of its own, not only by pods
	arrivals []types.UID // pods it controls that were not there before
}

// tally counts the active pods that matter to an owner, and those that are on
// their way out.
type tally struct {
	controlled int // it controls
	replicas   int // it controls, and its selector matches: what it manages
	labeled    int // of the replicas, those that carry every label of the template
	ready      int // of the replicas, those that are ready
	orphans    int // nobody controls, and its selector matches: what it may adopt
	dying      int // it controls, and they are being deleted
	leaving    int // of the dying, those that its selector matches and that have not ended
}

// view is what one process has been told: the objects as a cache that lists and
// watches has them, and what it may still remember of how they were before.
type view struct {
	*world
	facts *decoder
	// reached is how far each resource's lists and watches have come. What the
	// process wrote at a version up to there, it has been shown.
	reached map[string]history.Version
	asked   map[string]bool           // of which resources the process has asked for all
	pages   map[feed][]history.Object // of lists of which more is to come
	// claims is since which record each pod stands as it does to whoever may
	// claim it; former is how pods stood before, of late.
	claims map[types.UID]int64
	former map[types.UID][]sighting
	// standings is how each pod has stood of late among those that may be deleted.
	standings map[types.UID][]shown[*pod]
	// shown is when each pod came into view.
	shown map[types.UID]time.Duration
	faces faces
	// replaced: the present look is at a list, which a cache takes in one object
	// after another.
	replaced bool
}

// ledger is the account of one process with one owner: what it has called for
// without having been shown the effect, and what its view asked of it.
type ledger struct {
	process *process
	uid     types.UID // of the owner
	closed  bool      // nothing will be entered any more

	creates account
	deletes account

	// credit counts pods of this owner that came into view though the process
	// was not told that it made them: a controller that counts arrivals takes
	// them for its own (traps 12, 13).
	credit   int
	creditAt time.Duration
	// early is pods that came into view while creates were in flight, so that
	// an answer may yet say that the process made them.
	early map[types.UID]bool

	// ceiling is what creates must stay within, floor what deletes must leave:
	// the replicas that the owner asks for, unless it is being deleted or is not
	// in view, when nothing may be created and nothing be deleted.
	ceiling sinceIdle
	floor   sinceIdle
	// joined and left count the active pods that the owner won and lost in the
	// view otherwise than by this process' own hand.
	joined countSinceIdle
	left   countSinceIdle
	// knew is what the process may report of the owner.
	knew knowledge

	// ready: the process has seen the owner, and all pods at least once.
	ready bool
	tally tally // as of the last look at the view
	// selector is the owner's; reselected, that it has changed before our eyes.
	selector   string
	reselected bool
	// templates is what the process was shown of the owner's template, the latest
	// last.
	templates []*template
}

// account is one direction of a ledger.
type account struct {
	inFlight map[uint64]*call    // sent and not answered
	unseen   map[types.UID]*call // succeeded; the effect on the pod is not in view
	oldest   time.Duration       // when the oldest of unseen was sent, or earlier
	lapsed   map[types.UID]*call // was unseen for so long that it is waited for no more
}

// rollout is the account of one process with one Deployment: how it may have
// had it, and its ReplicaSets, in mind of late.
//
// The two come by different watches, each late in its own way, so that every
// version of the one may have been seen with every state of the other.
type rollout struct {
	window
	process     *process
	uid         types.UID
	deployments []shown[*deployment]
	sets        []shown[state]
	// reported is when the process was last told that it had written the
	// Deployment's status.
	reported time.Duration
	// written is what the process was told it made of a ReplicaSet, until it is
	// shown that or newer. A controller may count by either (trap 12).
	written map[types.UID]*owner
	// origins says of each version that the process made of a ReplicaSet from which
	// one it did, as long as that may matter to a round that goes on.
	origins map[version]origin
	// taken is when the process was last told of a name that it may not give to a
	// new ReplicaSet, since one has it.
	taken map[string]time.Duration
	// hindered is when a call for the Deployment last took long, or failed for more
	// than a moment, as one conflict does; streak, how many have failed since one did
	// not.
	hindered time.Duration
	streak   int
	// unclear is when the process last had a ReplicaSet that may or may not count
	// as the Deployment's.
	unclear time.Duration
}

// publication is the account of one process with one name of a Service and of
// its Endpoints: how it may have had the two in mind of late.
type publication struct {
	window
	name      objectName // the Service's
	service   stance
	endpoints stance
	// services is the versions of the Service of late; nil says that there was none.
	services []shown[*service]
	// version is the highest of the Endpoints in view so far, and when it came first.
	version shown[history.Version]
	// answered is when the process was last answered to a write of the Endpoints, and
	// doubted whether that failed: then it may have read what there is past its watch.
	answered time.Duration
	doubted  bool
}

// callVerb is what a call does, as far as checks care.
type callVerb int

const leaseResource = "leases.coordination.k8s.io"
