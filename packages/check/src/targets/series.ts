import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Service, startPostgres, startRedis } from 'webmq-services'
import { obtainCentrifugo } from './centrifugo.js'
import { addCounts, type Counts, count, noCounts } from './count.js'
import { playOn } from './play.js'
import type { Played } from './record.js'
import { drawSchedule, type Schedule, THEMES } from './schedule.js'
import { socketIo } from './socket-io.js'
import { obtainSockudo, obtainSockudoPython } from './sockudo.js'
import type { System } from './system.js'
import { webmq } from './webmq.js'

const SYSTEMS: Readonly<Record<string, () => System | Promise<System>>> = {
  webmq: () => webmq,
  'socket.io': () => socketIo,
  centrifugo: obtainCentrifugo,
  sockudo: obtainSockudo,
  'sockudo-python': obtainSockudoPython,
  anycable: () => {
    throw new Error('the package of npm downloads its program from elsewhere, and no module of Go is served for it')
  },
}

export interface JudgeOptions {
  /** Schedules of each theme. */
  readonly count: number
  readonly seed: number
  readonly lengthMs: number
  /** A part of its name; empty: all. */
  readonly theme: string
  readonly parallelCount: number
  /** Whether all records are written, and not only those in which something is wrong. */
  readonly keepsAll: boolean
  readonly folder: string
  readonly say: (text: string) => void
}

/** Plays the same schedules against each system, and says a table. Returns whether WebMQ has kept its promises. */
export async function judgeSystems(names: readonly string[], options: JudgeOptions): Promise<boolean> {
  const rows: string[] = []
  let isRight = true
  for (const name of names) {
    const obtain = SYSTEMS[name]
    if (obtain === undefined)
      throw new Error(`there is no system ${name}; there are ${Object.keys(SYSTEMS).join(', ')}`)
    let system: System
    try {
      system = await obtain()
    } catch (error) {
      options.say(`${name} cannot be had here: ${error instanceof Error ? error.message : String(error)}`)
      continue
    }
    options.say(`${name}: ${system.title}; ${system.settings}`)
    for (const theme of THEMES.filter((each) => each.includes(options.theme))) {
      const counts = await playTheme(name, system, theme, options)
      rows.push(rowOf(name, theme, options.count, counts))
      if (name === 'webmq') isRight &&= wrongsOf(counts) === 0
    }
  }
  options.say([...HEAD, ...rows].join('\n'))
  return isRight
}

/** What no system should do that calls a recovery complete, or says nothing. */
function wrongsOf({ silentlyLost, doubled, inverted, falselyRecovered }: Counts): number {
  return silentlyLost + doubled + inverted + falselyRecovered
}

const HEAD = [
  '| system | theme | schedules | acknowledged | to deliver | recovered | gaps told | lost, told | silently lost | doubled | inverted | false recovered |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
]

function rowOf(name: string, theme: string, schedules: number, counts: Counts): string {
  const { acked, expected, recovered, toldGaps, toldLost, silentlyLost, doubled, inverted, falselyRecovered } = counts
  const figures = [acked, expected, recovered, toldGaps, toldLost, silentlyLost, doubled, inverted, falselyRecovered]
  const cells = [schedules, ...figures].map((figure) => figure.toLocaleString('en'))
  return `| ${[name, theme, ...cells].join(' | ')} |`
}

async function playTheme(
  name: string,
  system: System,
  theme: Schedule['theme'],
  { count: schedules, seed, lengthMs, parallelCount, keepsAll, folder, say }: JudgeOptions,
): Promise<Counts> {
  const services: Service[] = [await startRedis({ isPrivate: true })]
  const files = mkdtempSync(path.join(tmpdir(), 'webmq-judge-'))
  const totals = noCounts()
  const left = Array.from({ length: schedules }, (_, index) => drawSchedule(theme, seed + index, lengthMs))
  const lane = async () => {
    for (let schedule = left.shift(); schedule !== undefined; schedule = left.shift()) {
      const namespace = `${theme}-${schedule.seed}`
      const [redisUrl = '', postgresUrl] = services.map(({ url }) => url)
      const played = await playOn(system, schedule, { redisUrl, postgresUrl, folder: files, namespace })
      const counts = count(played)
      addCounts(totals, counts)
      say(`${name} ${theme} seed ${schedule.seed}: ${JSON.stringify(counts)}`)
      if (keepsAll || wrongsOf(counts) > 0) say(`  record: ${save(folder, name, schedule, played)}`)
    }
  }
  try {
    if (system.needsPostgres === true) services.push(await startPostgres({ settings: { max_connections: '400' } }))
    const lanes = await Promise.allSettled(Array.from({ length: parallelCount }, lane))
    for (const each of lanes) if (each.status === 'rejected') throw each.reason
  } finally {
    await Promise.all(services.map((service) => service.stop()))
    rmSync(files, { recursive: true, force: true })
  }
  return totals
}

function save(folder: string, name: string, schedule: Schedule, played: Played): string {
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, `judge-${name}-${schedule.theme}-${schedule.seed}.json`)
  writeFileSync(file, JSON.stringify({ schedule, played }))
  return file
}
