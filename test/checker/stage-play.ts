import type { Company } from '../../packages/check/src/actors/company.js'
import { MAX_RECONNECT_MS, type Rules, rulesOfLog, SLACK_MS } from '../../packages/check/src/judging/rules.js'
import { type Played, playAt, type Site } from '../../packages/check/src/playing/play.js'
import type { Schedule } from '../../packages/check/src/playing/schedule.js'
import type { Stage } from './stage.js'

let playCount = 0

/** Plays a schedule with nodes of its own. No process is left behind. */
export async function play(stage: Stage, schedule: Schedule, company?: Company): Promise<Played> {
  const nodes = stage.createNodes(schedule, `check-${process.pid}-${++playCount}`)
  const site: Site = {
    addresses: nodes.map((_, index) => stage.addressOf(index)),
    isUp: (index) => nodes[index]?.isUp ?? false,
    nodes,
    breakable: stage,
    rules: rulesOf(stage, schedule),
    prefix: '',
  }
  try {
    await Promise.all(nodes.map((node) => node.start()))
    return await playAt(site, schedule, company)
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    stage.heal()
  }
}

/** What a broker promises in a schedule. */
function rulesOf(stage: Stage, { logged, server }: Schedule): Rules {
  const { log, isDurable } = stage.row
  return {
    ...rulesOfLog(log === false || logged === 'none' ? 'none' : log, stage.loggedPatterns(logged)),
    isDurable,
    keeps: { messageCount: server.historyMaxMessages, ageMs: Number.POSITIVE_INFINITY },
    settleMs: 2 * server.brokerHeartbeatMs + MAX_RECONNECT_MS + SLACK_MS,
  }
}
