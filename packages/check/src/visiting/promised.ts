import { CannotRun } from '../exit-codes.js'
import type { NodeAddress } from '../judging/record.js'
import { type Rules, rulesOfLog, SLACK_MS } from '../judging/rules.js'
import { DEFAULT_MESSAGES_PER_SECOND } from '../playing/draw.js'
import type { Logged } from '../playing/schedule.js'
import { nodeInfos } from './node-infos.js'
import { type Probed, probe } from './probe.js'
import { type Scope, scopeOf } from './scope.js'

/** An installation that is running already, as its owner describes it. What is missing is found out. */
export interface Installation {
  /** `ws://…` or `wss://…`, of nodes or of a load balancer. */
  readonly urls: readonly string[]
  readonly token?: () => string
  /** Of the HTTP API. */
  readonly apiKey?: string
  /** First words of all keys. */
  readonly prefix: string
  readonly log?: Rules['log']
  /** `all`, `none`, or the pattern of a rule. */
  readonly logged?: string
  /** Messages that the log holds at least. Default 0: it may forget anything, and say so. */
  readonly keepsMessages: number
  /** What a command of the operator has upset may take so long. Without commands: 0. */
  readonly settleMs: number
}

/** What an installation promises, and what a schedule there may do. */
export interface Promised {
  readonly rules: Rules
  readonly kind: Logged
  readonly logged: string
  readonly messagesPerSecond: number
  /** For people: name and value. */
  readonly facts: readonly (readonly [name: string, value: string])[]
}

/** What schedules need of the limits of a connection. */
const NEEDED = { maxListensPerConnection: 10, maxPayloadBytes: 3_000 } as const
/** Of the rate that the server allows: some messages are published twice. */
const SHARE_OF_LIMIT = 0.5
const RATE_LIMITS = ['maxPublishesPerSecond', 'maxPublishesPerSecondPerUser']
/** Brokers whose nodes have logs of their own. */
const LOG_PER_NODE = new Set(['memory', 'mesh'])

/**
 * Finds out what an installation promises: it publishes two messages to each address, and reads `welcome`.
 * @param lengthMs The token must last so long.
 * @throws {CannotRun}
 */
export async function findPromise(
  installation: Installation,
  addresses: readonly NodeAddress[],
  word: string,
  lengthMs: number,
): Promise<Promised> {
  const told = installation.logged ?? 'all'
  const scope = scopeOf(told, word)
  const probed: Probed[] = []
  for (const address of addresses) probed.push(await probe(address, scope['#'], probeKeys(scope), word))
  for (const each of probed) expectRoom(each, lengthMs)
  const kind = kindOf(installation, probed)
  const log = kind === 'none' ? 'none' : await logOf(installation, probed)
  const logged = kind === 'none' ? 'none' : told
  const base = rulesOfLog(log, kind === 'none' ? [] : [told === 'all' ? '#' : told])
  const [{ limits } = { limits: {} as Probed['limits'] }] = probed
  const { dedupeWindowMs = base.dedupe.windowMs, dedupeMaxIds = base.dedupe.maxIds } = limits
  const rules: Rules = {
    ...base,
    keeps: { messageCount: installation.keepsMessages, ageMs: Number.POSITIVE_INFINITY },
    dedupe: { ...base.dedupe, windowMs: dedupeWindowMs, maxIds: dedupeMaxIds },
    leaseMs: limits.streamLeaseMs ?? base.leaseMs,
    settleMs: Math.max(SLACK_MS, installation.settleMs),
  }
  const messagesPerSecond = rateOf(probed)
  const facts: [string, string][] = [
    ...addresses.map(({ name, url }, index): [string, string] => [
      name,
      `${url}, ${probed[index]?.node}, version ${probed[index]?.version}`,
    ]),
    ['log', LOG_WORDS[log]],
    ['logged keys', logged === 'all' ? `all of ${word}.#` : logged],
    ['window of message ids', `${dedupeWindowMs / 1_000} s, ${dedupeMaxIds.toLocaleString('en')} ids`],
    ['rate', `${messagesPerSecond} messages/s`],
  ]
  return { rules, kind, logged, messagesPerSecond, facts }
}

const LOG_WORDS: Readonly<Record<Rules['log'], string>> = {
  shared: 'one for all nodes',
  'per-node': 'one per node',
  none: 'none',
}

function probeKeys(scope: Scope): string[] {
  return [`${scope.log}.probe`, `${scope.live}.probe`]
}

function kindOf({ logged }: Installation, probed: readonly Probed[]): Logged {
  const [log, live] = [0, 1].map((index) => probed.map(({ epochs }) => epochs[index] !== undefined))
  const isAll = (all: readonly boolean[] = []) => all.every(Boolean)
  const isNone = (all: readonly boolean[] = []) => !all.some(Boolean)
  if (!(isAll(log) || isNone(log))) throw new CannotRun('some addresses log the keys of this run, others do not')
  if (logged === undefined) return isAll(log) ? 'all' : 'none'
  const kind = logged === 'all' ? 'all' : logged === 'none' ? 'none' : 'half'
  const isTrue = kind === 'none' ? isNone(log) : isAll(log) && (kind === 'all' ? isAll(live) : isNone(live))
  if (!isTrue) {
    const found = isAll(log) ? (isAll(live) ? 'all are' : 'those are, and others too') : 'they are not'
    throw new CannotRun(`--logged ${logged} is not what the server does with keys of this run: ${found} logged`)
  }
  return kind
}

/** Nodes whose messages have the same epoch share a log. One node alone says nothing: it is held to less. */
async function logOf({ log, apiKey, urls }: Installation, probed: readonly Probed[]): Promise<Rules['log']> {
  if (log !== undefined && log !== 'none') return log
  if (apiKey !== undefined) {
    const infos = await nodeInfos(urls[0] ?? '', apiKey)
    return infos.some(({ broker }) => LOG_PER_NODE.has(broker)) ? 'per-node' : 'shared'
  }
  const epochs = new Set(probed.map(({ epochs: [epoch] }) => epoch))
  return epochs.size === 1 && new Set(probed.map(({ node }) => node)).size > 1 ? 'shared' : 'per-node'
}

function rateOf(probed: readonly Probed[]): number {
  const limits = probed.flatMap(({ limits: each }) => RATE_LIMITS.flatMap((name) => each[name] ?? []))
  return Math.max(
    1,
    Math.floor(Math.min(DEFAULT_MESSAGES_PER_SECOND, ...limits.map((limit) => limit * SHARE_OF_LIMIT))),
  )
}

function expectRoom({ limits, expiresInMs }: Probed, lengthMs: number): void {
  for (const [name, least] of Object.entries(NEEDED)) {
    const limit = limits[name]
    if (limit !== undefined && limit < least)
      throw new CannotRun(`the server allows ${name} ${limit}; a run needs ${least}`)
  }
  if (expiresInMs !== undefined && expiresInMs < lengthMs) {
    const [has, needs] = [expiresInMs, lengthMs].map((ms) => Math.ceil(ms / 1_000))
    throw new CannotRun(`the token expires in ${has} s, and a schedule takes up to ${needs} s`)
  }
}
