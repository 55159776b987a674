import type { RunRecord } from './record.js'
import type { RuleName } from './violation.js'

/** A rule for people: docs/checker.md has the same table. */
export interface PromiseNote {
  readonly promise: string
  /** When it is not judged. */
  readonly unless: string
  /** What it is held against. */
  readonly of: Subject
  /** What the installation must have, or nothing is held against it. */
  readonly needs?: 'log' | 'shared log'
}

export type Subject = keyof typeof COUNTS | 'deliveries owed'

const ALWAYS = 'Always judged.'
const NO_TIMES = 'Not while a fault is in effect, nor while the client does not read.'

export const PROMISES: Readonly<Record<RuleName, PromiseNote>> = {
  lost: {
    promise: 'Every acknowledged message comes to every listen that matches it, or a gap stands in its place.',
    unless:
      'Not of publishes without `ok`, nor of what was acknowledged just before the end of the run. In a mesh, a node that is cut off accepts messages by itself: their gap comes when the sides know of each other.',
    of: 'deliveries owed',
  },
  twice: {
    promise: 'A listen gets a message once.',
    unless: 'Of keys without a log: not over two connections, nor of an id that was published again on another node.',
    of: 'deliveries',
  },
  'out-of-order': {
    promise: 'Messages of one publisher and key come in the order of their publishes, logged ones in that of the log.',
    unless:
      'Not of messages that were refused and tried again, nor over the logs of two nodes, nor of second copies without a log.',
    of: 'deliveries',
  },
  'before-since': {
    promise: 'A replay begins after `since`.',
    unless: 'Not of a `since` of another epoch.',
    of: 'answers to listen',
    needs: 'log',
  },
  'not-live-yet': { promise: 'A live message belongs to a live listen.', unless: ALWAYS, of: 'deliveries' },
  'live-falls': {
    promise: 'Live positions of a connection rise.',
    unless: 'Not between two epochs.',
    of: 'deliveries',
    needs: 'log',
  },
  'position-reused': { promise: 'A position belongs to one message.', unless: ALWAYS, of: 'deliveries', needs: 'log' },
  'position-moved': {
    promise: 'A message has one position in an epoch.',
    unless: 'Not of an id that was published again after the window of ids.',
    of: 'deliveries',
    needs: 'log',
  },
  'position-missing': {
    promise: 'Messages of logged keys, and the `ok` of their publishes, have a position; others have none.',
    unless: 'Not of an `ok` that says `duplicate`.',
    of: 'deliveries',
  },
  'position-refused': {
    promise: 'A position that a server has given stays valid.',
    unless: 'Not after the log was lost.',
    of: 'resumed listens',
    needs: 'log',
  },
  'position-falls': {
    promise: 'The position of an answer is not before its messages, nor before `since`.',
    unless: ALWAYS,
    of: 'answers to listen',
  },
  'epoch-unannounced': {
    promise: 'Messages of another log come after a gap.',
    unless: 'Not of keys without a log.',
    of: 'deliveries',
    needs: 'log',
  },
  'neither-recovered-nor-gap': {
    promise: 'The answer to `since` says `recovered` or a gap, and not both.',
    unless: ALWAYS,
    of: 'resumed listens',
  },
  'recovered-untrue': {
    promise: '`recovered` is said of the same epoch only, and where every key of the pattern is logged.',
    unless: ALWAYS,
    of: 'resumed listens',
    needs: 'log',
  },
  'gap-untrue': {
    promise: 'The reason of a gap is true.',
    unless: 'Not of `history-expired` where nobody says how much the log holds.',
    of: 'gaps',
  },
  'gap-untold': {
    promise: 'A live listen is told a gap when the log was lost.',
    unless: 'Not where every node has its own log, of keys that are not logged, nor of a loss of what nobody knew.',
    of: 'losses of the log',
    needs: 'shared log',
  },
  'replayed-untrue': {
    promise: 'As many messages come as `replayed` says.',
    unless: 'Not if the connection ends before.',
    of: 'answers to listen',
  },
  'more-untrue': { promise: '`more` has a position to go on from.', unless: ALWAYS, of: 'answers to listen' },
  'last-untrue': {
    promise: '`last` gives the newest messages that the log holds.',
    unless: 'Not of messages that the log may have dropped, nor with `rewind`.',
    of: 'reads',
  },
  'limit-untrue': { promise: 'No more messages come than `limit` allows.', unless: ALWAYS, of: 'reads' },
  'read-hole': {
    promise: 'A read of the log leaves nothing out.',
    unless: 'Not of a read that was told a gap, nor before its first message where nobody knows the beginning.',
    of: 'reads',
  },
  'read-stale': {
    promise: 'A read of the log has what was acknowledged before.',
    unless: 'Not where every node has its own log, nor of what was acknowledged just before.',
    of: 'reads',
    needs: 'shared log',
  },
  'wrong-key': {
    promise: 'A message has its own key, and the pattern of its listen matches it.',
    unless: ALWAYS,
    of: 'deliveries',
  },
  alien: { promise: 'A message is one that was published, unchanged.', unless: ALWAYS, of: 'deliveries' },
  'duplicate-untrue': {
    promise: '`duplicate` is said only of an id that was published before.',
    unless: ALWAYS,
    of: 'acknowledged publishes',
  },
  'duplicate-untold': {
    promise: 'A second publish of an id within the window is answered with `duplicate`.',
    unless: 'Not of keys without a log, after a loss of the log, nor of two publishes at once without a shared log.',
    of: 'acknowledged publishes',
    needs: 'log',
  },
  echoed: {
    promise: 'A message with `noecho` does not come back to its connection.',
    unless: 'Not of one that was published again on another connection.',
    of: 'publishes',
  },
  'task-lost': {
    promise: 'A message comes to a member of each queue group that matches it.',
    unless: 'Not near a fault or a member that comes or goes, nor of ids that were published twice.',
    of: 'tasks',
  },
  'task-twice': {
    promise: 'A message comes to one member of a queue group only.',
    unless: 'As `task-lost`.',
    of: 'tasks',
  },
  'text-untrue': {
    promise: 'A reader of a stream shows what its writer has written, and its true end.',
    unless: 'Not of a text that is cut.',
    of: 'looks at streams',
  },
  'text-short': {
    promise: 'A stream is shown with all that was acknowledged to its writer.',
    unless: 'Not of what was acknowledged just before.',
    of: 'looks at streams',
  },
  'stream-lost': {
    promise: 'A stream is not lost while its writer is heard.',
    unless: 'Not when its writer was silent for its lease.',
    of: 'looks at streams',
  },
  'stream-endless': {
    promise: 'A stream ends when its writer is gone.',
    unless: NO_TIMES,
    of: 'looks at streams',
  },
  'stop-untrue': {
    promise: 'A stop reaches one writer, once, or is refused.',
    unless: 'A stop without an answer may have reached one.',
    of: 'stops',
  },
  refused: {
    promise: 'Nothing that is right is refused for good.',
    unless: 'Not of refusals that are retryable, nor of `E_POSITION_INVALID` after a loss of the log.',
    of: 'requests',
  },
  'no-answer': {
    promise: 'A request is answered, or its connection ends, in time.',
    unless: NO_TIMES,
    of: 'requests',
  },
  'slow-answer': { promise: 'A request is answered in time.', unless: NO_TIMES, of: 'requests' },
  'slow-delivery': {
    promise: 'A live message comes in time after its `ok`.',
    unless: `${NO_TIMES} Not of ids that were published again.`,
    of: 'deliveries',
  },
  'replay-endless': { promise: 'A replay ends in time.', unless: NO_TIMES, of: 'answers to listen' },
  'not-live': { promise: 'Every listen is live at the end of the run.', unless: NO_TIMES, of: 'listens' },
  'close-code': {
    promise: 'A connection is closed with a code that has a reason.',
    unless: 'Not of connections that the client has closed.',
    of: 'connections',
  },
  breach: { promise: 'The server sends what `webmq.v1` allows.', unless: ALWAYS, of: 'connections' },
}

const eventsOf = ({ listeners }: RunRecord) => listeners.flatMap(({ events }) => events)
const attemptsOf = ({ publishers }: RunRecord) =>
  publishers.flatMap(({ messages }) => messages.flatMap(({ attempts }) => attempts))

const COUNTS = {
  deliveries: (record: RunRecord) => eventsOf(record).filter(({ what }) => what === 'message').length,
  'answers to listen': (record: RunRecord) => eventsOf(record).filter(({ what }) => what === 'ok').length,
  'resumed listens': (record: RunRecord) =>
    eventsOf(record).filter((event) => event.what === 'asked' && event.since !== undefined).length,
  gaps: (record: RunRecord) =>
    eventsOf(record).filter((event) => event.what === 'gap' || (event.what === 'ok' && event.gap !== undefined)).length,
  'losses of the log': ({ faults }: RunRecord) =>
    faults.filter(({ touches }) => touches.includes('broker-data')).length,
  listens: ({ listeners }: RunRecord) => listeners.flatMap(({ patterns }) => patterns).length,
  reads: ({ reads }: RunRecord) => reads.length,
  publishes: (record: RunRecord) => attemptsOf(record).length,
  'acknowledged publishes': (record: RunRecord) => attemptsOf(record).filter(({ outcome }) => outcome === 'ok').length,
  tasks: ({ members }: RunRecord) => members.flatMap(({ tasks }) => tasks).length,
  'looks at streams': ({ views }: RunRecord) => views.length,
  stops: ({ stops }: RunRecord) => stops.length,
  requests: ({ connections }: RunRecord) => connections.flatMap(({ requests }) => requests).length,
  connections: ({ connections }: RunRecord) => connections.length,
} as const

/** How often a run gave reason to hold each promise against something. */
export function subjectsOf(record: RunRecord, owedCount: number): Record<Subject, number> {
  const counted = Object.entries(COUNTS).map(([name, countIn]) => [name, countIn(record)])
  return { ...(Object.fromEntries(counted) as Record<keyof typeof COUNTS, number>), 'deliveries owed': owedCount }
}
