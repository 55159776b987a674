import type { Readiness } from './readiness.js'

/** A state of a node that its operators have to know. */
export interface NodeState {
  /** Unique; the name of its line of `doctor`. */
  readonly name: string
  /** Publishers or clients are refused. */
  readonly isFailure?: true
  /** A part that is nearer to the cause logs how it begins. */
  readonly isLogged?: true
  /** What is to be said, about a node named "it"; `undefined`: the node is not in this state. The answer may be that of any version. */
  readonly textOf: (answer: Partial<Readiness>) => string | undefined
  /** A sum since the start that puts the node in this state. For the log it counts as long as it grows. */
  readonly sum?: 'auditLinesLost'
  readonly advice: string
}

const percent = (share: number) => Math.floor(share * 100)
const because = (reason: string | undefined) => (reason === undefined ? '' : `: ${reason}`)
const SECOND_MS = 1_000

/**
 * All states that `/ready` tells. The log repeats them, `doctor` prints them, and docs/operations.md lists them with their
 * metrics and alerts.
 */
export const NODE_STATES: readonly NodeState[] = [
  {
    name: 'starting',
    isFailure: true,
    isLogged: true,
    textOf: ({ status, broker }) =>
      status === 'starting' ? `it is starting, and waits for its broker${because(broker?.reason)}` : undefined,
    advice: 'Look whether the broker runs, and whether its address is right. The log says what the node waits for.',
  },
  {
    name: 'draining',
    isFailure: true,
    isLogged: true,
    textOf: ({ status }) =>
      status === 'draining' ? 'it is draining, and sends its clients to other nodes' : undefined,
    advice: 'Somebody stops it: wait, or use another node.',
  },
  {
    name: 'stopped',
    isFailure: true,
    isLogged: true,
    textOf: ({ status }) => (status === 'stopped' ? 'it has stopped' : undefined),
    advice: 'Start it again.',
  },
  {
    name: 'broker-down',
    isFailure: true,
    isLogged: true,
    textOf: ({ status, broker }) =>
      status === 'broker-down' ? `its broker is down${because(broker?.reason)}` : undefined,
    advice: 'Look at the broker, and at the way to it. Publishes wait, and then fail with E_BROKER_UNAVAILABLE.',
  },
  {
    name: 'broker-blocked',
    isFailure: true,
    isLogged: true,
    textOf: ({ broker }) =>
      broker?.status === 'blocked' ? `its broker takes no messages${because(broker.reason)}` : undefined,
    advice: 'Give the broker memory or disk, or let it drop what it may. Until then no node can publish.',
  },
  {
    name: 'full',
    isFailure: true,
    isLogged: true,
    textOf: ({ status }) => (status === 'full' ? 'it is full, and refuses connections' : undefined),
    advice: 'Add nodes, or raise --max-connections and the descriptor limit (ulimit -n).',
  },
  {
    name: 'pacing',
    isLogged: true,
    textOf: ({ waitingPublishes }) =>
      waitingPublishes === undefined
        ? undefined
        : `${waitingPublishes} publishes wait for its broker, which is too slow for them`,
    advice: 'Look at the CPU, memory and disk of the broker; ask again: a moment of it does no harm.',
  },
  {
    name: 'outbox',
    isLogged: true,
    textOf: ({ outbox, outboxReason }) =>
      outbox === 'down' ? `its database outbox is down${because(outboxReason)}` : undefined,
    advice: 'Look at the database, and at the rights of the user of --outbox.',
  },
  {
    name: 'certificate',
    isLogged: true,
    textOf: ({ certificate }) =>
      certificate === 'refused' ? 'its new TLS certificate cannot be used, and the old one stays' : undefined,
    advice: 'The log says why. Put a certificate there that belongs to its key.',
  },
  {
    name: 'expired',
    isFailure: true,
    isLogged: true,
    textOf: ({ certificate }) =>
      certificate === 'expired' ? 'a TLS certificate of it has expired, and clients refuse it' : undefined,
    advice: 'Renew it: the server finds the new file by itself.',
  },
  {
    name: 'clocks',
    textOf: ({ clockApartMs }) =>
      clockApartMs === undefined
        ? undefined
        : `its clock is ${Math.round(clockApartMs / SECOND_MS)} s apart from that of another node`,
    advice: 'Run NTP on all machines: tokens, ages of history and times of messages go by the clock of each node.',
  },
  {
    name: 'log rules',
    isLogged: true,
    textOf: ({ otherLogPeers }) =>
      otherLogPeers === undefined ? undefined : `${otherLogPeers} other nodes log other keys`,
    advice: 'Give all nodes the same rules of --history and --retain: until then listeners are told gaps.',
  },
  {
    name: 'nodes',
    isLogged: true,
    textOf: ({ differentPeers, otherLogPeers }) =>
      differentPeers === undefined || differentPeers === otherLogPeers
        ? undefined
        : `${differentPeers} other nodes have other options, or are of another version`,
    advice: 'End the upgrade, or give all nodes the same options. The log of the server names the nodes.',
  },
  {
    name: 'log',
    textOf: ({ logHeldShare }) =>
      logHeldShare === undefined
        ? undefined
        : `its full log holds ${percent(logHeldShare)} % of what a rule of --history says`,
    advice: 'Raise --history-max-messages and --history-max-bytes, or lower the rule.',
  },
  {
    name: 'audit log',
    isLogged: true,
    textOf: ({ auditLinesLost, auditWaitingBytes }) => {
      if (auditLinesLost !== undefined) return `it has lost ${auditLinesLost} lines of its audit log since its start`
      return auditWaitingBytes === undefined
        ? undefined
        : `${auditWaitingBytes} bytes of its audit log wait to be written`
    },
    sum: 'auditLinesLost',
    advice: 'Look at the disk of --audit-log: it is slow, full or gone; ask again: a moment of it does no harm.',
  },
  {
    name: 'webhook',
    isLogged: true,
    textOf: ({ webhook }) => (webhook === 'open' ? 'its webhook fails, and is not asked for now' : undefined),
    advice: 'Look at the service of --webhook. Until it answers, --webhook-failure decides.',
  },
]
