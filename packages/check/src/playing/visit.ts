import { randomBytes } from 'node:crypto'
import { type Rules, rulesOfLog } from '../judging/rules.js'
import { drawVisit } from './draw.js'
import { type Played, playAt, type Site } from './play.js'
import type { Logged } from './schedule.js'
import { scoped, scopeOf } from './scope.js'

/** An installation that is running already, as its owner describes it. */
export interface Installation {
  /** `ws://…` or `wss://…`, of nodes or of a load balancer. */
  readonly urls: readonly string[]
  readonly log: Rules['log']
  /** `all`, `none`, or the pattern of a rule. */
  readonly logged: string
}

/** How random schedules are played on an installation. */
export interface VisitOptions {
  readonly count: number
  readonly seed: number
  readonly lengthMs: number
  readonly played: (played: Played, tookMs: number) => void
}

const NOTHING_TO_BREAK = { parts: [], clientLinks: [], brokerLinks: [], peerLinks: [] }

/**
 * Plays schedules on an installation, one after another: clients are cut, stall and move. Its nodes and its broker are
 * left alone, and so are the keys of others.
 * @throws {Error} for `logged` that is no such pattern.
 */
export async function visit(
  { urls, log, logged }: Installation,
  { count, seed, lengthMs, played }: VisitOptions,
): Promise<void> {
  const kind: Logged = log === 'none' || logged === 'none' ? 'none' : logged === 'all' ? 'all' : 'half'
  for (let index = 0; index < count; index++) {
    const word = `check-${randomBytes(4).toString('hex')}`
    const scope = scopeOf(logged, word)
    const schedule = scoped(drawVisit(urls.length, kind, seed + index, lengthMs), scope)
    const site: Site = {
      addresses: urls.map((url) => ({ name: url, url })),
      isUp: () => true,
      nodes: [],
      breakable: NOTHING_TO_BREAK,
      rules: rulesOfLog(log, kind === 'none' ? [] : [logged === 'all' ? '#' : logged]),
      prefix: `${word}-`,
    }
    const beganAtMs = performance.now()
    played(await playAt(site, schedule), performance.now() - beganAtMs)
  }
}
