import type {
  BrokerName,
  ListenerPlan,
  PublisherPlan,
  Schedule,
  ServerPlan,
} from '../../packages/check/src/playing/schedule.js'

/** A schedule that has found a defect, and what the defect was. It must not come back. */
export interface Pinned {
  readonly found: string
  readonly brokers: readonly BrokerName[]
  readonly schedule: Omit<Schedule, 'broker' | 'theme' | 'seed'>
}

const SHARED_LOG: readonly BrokerName[] = ['redis', 'nats', 'rabbitmq']
/** Long heartbeats: nobody finds out by itself that a link is dead. */
const SERVER: ServerPlan = { historyMaxMessages: 10_000, brokerHeartbeatMs: 5_000 }
const PUBLISHER: PublisherPlan = {
  nodes: [0],
  isSticky: true,
  keys: ['log.a.0', 'log.b.deep.0'],
  burstCount: 1,
  everyMs: 15,
  payloadBytes: [60, 60],
  noechoShare: 0,
  twinShare: 0,
  againShare: 0,
}
const LISTENER: ListenerPlan = { nodes: [0, 1], isSticky: true, listens: [{ pattern: 'log.#', start: 'now' }] }
/** Is at node 1 already, which has asked the broker for the pattern: nothing holds up the next one that comes. */
const RESIDENT: ListenerPlan = { ...LISTENER, nodes: [1] }

/** Listens to every key by its own, all of them disjoint. */
const FIVE_LISTENS = ['log.a.0', 'log.a.1', 'log.b.deep.0', 'log', 'live.a'].map((pattern) => ({
  pattern,
  start: 'now' as const,
}))

const PINNED: readonly Pinned[] = [
  {
    found: 'a node whose link stands still says that the log has changed, and replays all of it',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 11_000,
      logged: 'all',
      server: SERVER,
      publishers: [PUBLISHER],
      listeners: [LISTENER, RESIDENT],
      readers: [],
      steps: [
        { atMs: 2_000, forMs: 7_000, what: 'broker-link', link: 1, fault: 'stall', streams: ['downstream'] },
        { atMs: 3_000, forMs: 0, what: 'move-listener', actor: 0 },
      ],
    },
  },
  {
    found: 'a node that was frozen says that the log has changed, and replays all of it',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 11_000,
      logged: 'all',
      server: SERVER,
      publishers: [PUBLISHER],
      listeners: [LISTENER, RESIDENT],
      readers: [],
      steps: [
        {
          atMs: 2_000,
          forMs: 5_000,
          what: 'broker-link',
          link: 1,
          fault: 'stall',
          streams: ['upstream', 'downstream'],
        },
        { atMs: 2_500, forMs: 1_500, what: 'freeze-node', node: 1 },
        { atMs: 3_000, forMs: 0, what: 'move-listener', actor: 0 },
      ],
    },
  },
  {
    found: 'replays of one connection with a small outbox do not end',
    brokers: ['redis', 'nats', 'rabbitmq', 'memory'],
    schedule: {
      lengthMs: 8_000,
      logged: 'all',
      server: { ...SERVER, maxPayloadBytes: 8_192, maxOutboxBytes: 16_384 },
      publishers: [
        { ...PUBLISHER, keys: ['log.a.0', 'log.a.1', 'log.b.deep.0', 'log', 'live.a'], payloadBytes: [60, 3_000] },
      ],
      listeners: [{ nodes: [0], isSticky: true, listens: FIVE_LISTENS }],
      readers: [],
      steps: [{ atMs: 2_000, forMs: 3_000, what: 'stall-listener', actor: 0 }],
    },
  },
  {
    found: 'the ok of a logged publish has no position when an unlogged one follows in the same turn',
    brokers: ['redis'],
    schedule: {
      lengthMs: 4_000,
      logged: 'half',
      server: SERVER,
      publishers: [{ ...PUBLISHER, keys: ['log.a.0', 'live.a'], burstCount: 10, everyMs: 200 }],
      listeners: [LISTENER],
      readers: [],
      steps: [],
    },
  },
  {
    found: 'of two publishes of an id at the same time, neither is called a duplicate',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 4_000,
      logged: 'all',
      server: SERVER,
      publishers: [{ ...PUBLISHER, isSticky: false, twinShare: 1 }],
      listeners: [LISTENER],
      readers: [],
      steps: [],
    },
  },
  {
    found: 'an id is stored twice over a restart of NATS, when the log no longer has its message',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 12_000,
      logged: 'all',
      server: { ...SERVER, historyMaxMessages: 50 },
      publishers: [{ ...PUBLISHER, againShare: 0.25, againAfterMs: [4_000, 6_000] }],
      listeners: [LISTENER, RESIDENT],
      readers: [],
      steps: [
        { atMs: 3_500, forMs: 500, what: 'kill-broker', part: 0 },
        // They begin anew after the broker, and have never seen the ids that are published there again.
        { atMs: 3_000, forMs: 2_000, what: 'kill-node', node: 1 },
        { atMs: 3_000, forMs: 2_000, what: 'kill-node', node: 2 },
      ],
    },
  },
  {
    found: 'a node whose clients do not answer takes longer to stop than it may',
    brokers: ['memory'],
    schedule: {
      lengthMs: 6_000,
      logged: 'all',
      server: SERVER,
      publishers: [PUBLISHER],
      listeners: [LISTENER],
      readers: [],
      steps: [
        {
          atMs: 1_000,
          forMs: 4_000,
          what: 'client-link',
          link: 0,
          fault: 'stall',
          streams: ['upstream', 'downstream'],
        },
        { atMs: 1_500, forMs: 500, what: 'stop-node', node: 0 },
      ],
    },
  },
  {
    found: 'a node whose broker does not answer takes longer to stop than it may',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 7_000,
      logged: 'all',
      server: SERVER,
      publishers: [PUBLISHER],
      listeners: [LISTENER],
      readers: [],
      steps: [
        { atMs: 1_000, forMs: 5_000, what: 'freeze-broker', part: 0 },
        { atMs: 1_500, forMs: 500, what: 'stop-node', node: 0 },
      ],
    },
  },
  {
    found: 'a listen of a pattern that is logged in part is not told of a new log, if it has just gone live',
    brokers: SHARED_LOG,
    schedule: {
      lengthMs: 7_000,
      logged: 'half',
      server: SERVER,
      publishers: [{ ...PUBLISHER, keys: ['log.a.0', 'live.b.0'] }],
      listeners: [0, 1, 2, 0].map((next) => ({
        nodes: [0, next],
        isSticky: true,
        listens: [{ pattern: '*.*.*', start: 'now' as const }],
      })),
      readers: [],
      steps: [
        { atMs: 2_000, forMs: 1_500, what: 'wipe-broker', part: 0 },
        ...[0, 1, 2, 3].map((actor) => ({
          atMs: 2_300 + 300 * actor,
          forMs: 0,
          what: 'move-listener' as const,
          actor,
        })),
      ],
    },
  },
]

/** The pinned schedules of a broker. */
export function pinnedFor(broker: BrokerName): Schedule[] {
  return PINNED.filter(({ brokers }) => brokers.includes(broker)).map(({ found, schedule }, index) => ({
    seed: index + 1,
    broker,
    theme: found,
    ...schedule,
  }))
}
