import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Company } from '../../packages/check/src/actors/company.js'
import type { Played } from '../../packages/check/src/playing/play.js'
import type { BrokerName, Schedule } from '../../packages/check/src/playing/schedule.js'
import { shrink, smallerThan } from '../../packages/check/src/playing/shrink.js'
import {
  addTo,
  countedOf,
  createTotals,
  lineOf,
  summaryOf,
  type Totals,
  violationsOf,
} from '../../packages/check/src/report/report.js'
import { drawSchedule, themesFor } from './broker-schedules.js'
import { BROKERS } from './brokers.js'
import { Troupe } from './clients/troupe.js'
import { pinnedFor } from './pinned.js'
import { measureRecovery } from './recover.js'
import { playAlone, playSeries } from './series.js'

const FOLDER = path.join('.cache', 'checker')
const USAGE = `npm run check:outside -- [options]

  --broker <name,…>     ${Object.keys(BROKERS).join(', ')}, or all. Default: all.
  --schedules <number>  Schedules of each broker. Default: 10.
  --of-each-theme <number>
                        Schedules of each theme that the broker has, instead of --schedules.
  --seconds <number>    Length of a schedule. Default: 20.
  --seed <number>       Seed of the first schedule; the next ones follow. Default: 1.
  --theme <words>       Only schedules of themes with these words in their names, such as streams.
  --parallel <number>   Schedules that are played at the same time. Default: 4.
  --pinned              Play the schedules that have found a defect once, instead of random ones.
  --keep                Write the schedules and records of all runs to ${FOLDER}, not only of those that fail.
  --json <file>         Write what was counted for each broker.
  --no-shrink           Do not look for a smaller schedule that fails, too.
  --play <file>         Play the schedule of a file that a failed run has written.
  --times <number>      With --play and --recover: so often. Default: 1; with --recover 5.
  --recover             Measure times to recover instead.
  --client <name>       Actors are clients in another language, driven by an adapter of packages/conformance: python,
                        javascript, go, or a command that starts one. With --broker, --play and what goes with them.

An installation that is running already, and other systems, are checked by packages/check: npx webmq-check --help.
`

const MAX_SHRINK_TRIES = 24
const MAX_SHRINK_MS = 10 * 60_000

const say = (text: string) => process.stdout.write(`${text}\n`)

function valuesOf(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      broker: { type: 'string', default: 'all' },
      schedules: { type: 'string', default: '10' },
      'of-each-theme': { type: 'string' },
      json: { type: 'string' },
      seconds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      theme: { type: 'string', default: '' },
      parallel: { type: 'string', default: '4' },
      pinned: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      'no-shrink': { type: 'boolean', default: false },
      play: { type: 'string' },
      times: { type: 'string' },
      recover: { type: 'boolean', default: false },
      client: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }).values
}

/** Prints the answer. @returns 1 after a violation. */
export async function main(args: readonly string[]): Promise<number> {
  const values = valuesOf(args)
  // Programs that this process has started end with it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
  if (values.help) {
    say(USAGE)
    return 0
  }
  if (values.recover) {
    for (const broker of brokersOf(values.broker))
      say(await measureRecovery(broker, numberOf(values.times ?? '5', 'times')))
    return 0
  }
  const troupe = values.client === undefined ? undefined : await Troupe.start(values.client)
  try {
    return (await playAsAsked(values, troupe)) > 0 ? 1 : 0
  } finally {
    await troupe?.stop()
  }
}

type Values = ReturnType<typeof valuesOf>

/** @returns How many schedules ended with a violation. */
async function playAsAsked(values: Values, troupe: Troupe | undefined): Promise<number> {
  const company = troupe && (() => troupe.company())
  const options = { shrinks: !values['no-shrink'], keepsAll: values.keep, ...(company && { company }) }
  if (values.play !== undefined) return await playFile(values.play, numberOf(values.times ?? '1', 'times'), company)
  const [count, seconds] = [numberOf(values.schedules, 'schedules'), numberOf(values.seconds, 'seconds')]
  const [seed, parallelCount] = [numberOf(values.seed, 'seed'), numberOf(values.parallel, 'parallel')]
  const lengthMs = seconds * 1_000
  const counted: Record<string, Counted> = {}
  let failedCount = 0
  for (const broker of brokersOf(values.broker)) {
    const themes = themesFor(broker).filter(({ name }) => name.includes(values.theme)).length
    // Neighbouring seeds have different themes.
    const ofThemes = values['of-each-theme']
    const length = ofThemes === undefined ? count : numberOf(ofThemes, 'of-each-theme') * themes
    const drawn = () => Array.from({ length }, (_, index) => drawSchedule(broker, seed + index, lengthMs, values.theme))
    const schedules = values.pinned ? pinnedFor(broker) : drawn()
    const series = { broker, schedules, parallelCount, ...(company && { company }) }
    const { totals, failed } = await check(broker, (played) => playSeries({ ...series, played }), options)
    failedCount += failed.length
    counted[broker] = { themes, seconds, ...countedOf(totals) }
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(counted))
  }
  return failedCount
}

/** Of a broker: its themes, the length of a schedule, and what was counted. */
type Counted = ReturnType<typeof countedOf> & { readonly themes: number; readonly seconds: number }

interface CheckOptions {
  readonly shrinks: boolean
  readonly keepsAll: boolean
  readonly company?: () => Company
}

async function check(
  name: Schedule['broker'],
  playAll: (played: (played: Played, tookMs: number) => void) => Promise<void>,
  { shrinks, keepsAll, company }: CheckOptions,
): Promise<{ readonly totals: Totals; readonly failed: readonly Played[] }> {
  const totals = createTotals()
  const failed: Played[] = []
  await playAll((played, tookMs) => {
    addTo(totals, played)
    say(lineOf(played, tookMs))
    if (keepsAll) say(`  schedule and record: ${save(played)}`)
    if (played.violations.length === 0) return
    failed.push(played)
    say(violationsOf(played))
    if (!keepsAll) say(`  schedule and record: ${save(played)}`)
  })
  for (const played of shrinks ? failed.slice(0, 1) : []) await shrinkAndSay(played, company)
  say(summaryOf(name, totals))
  return { totals, failed }
}

async function shrinkAndSay({ schedule, violations }: Played, company?: () => Company): Promise<void> {
  const rules = new Set(violations.map(({ rule }) => rule))
  say(`looking for a smaller schedule than that of seed ${schedule.seed}`)
  const fails = async (candidate: Schedule) => {
    const played = await playAlone(candidate, company?.())
    const isFailing = played.violations.some(({ rule }) => rules.has(rule))
    say(`  ${candidate.steps.length} steps, ${candidate.lengthMs} ms: ${isFailing ? 'fails' : 'passes'}`)
    return isFailing
  }
  const smallest = await shrink(schedule, { fails, smallerThan, maxTries: MAX_SHRINK_TRIES, maxMs: MAX_SHRINK_MS })
  say(`the smallest that fails:\n${JSON.stringify(smallest)}`)
}

async function playFile(file: string, times: number, company?: () => Company): Promise<number> {
  const read = JSON.parse(readFileSync(file, 'utf8')) as Schedule | { readonly schedule: Schedule }
  const schedule = 'schedule' in read ? read.schedule : read
  const { broker } = schedule
  if (broker === 'given') throw new Error('--play cannot repeat a run of --url: give its --seed')
  const options = {
    broker,
    schedules: Array<Schedule>(times).fill(schedule),
    parallelCount: 1,
    ...(company && { company }),
  }
  const play = (played: (played: Played, tookMs: number) => void) => playSeries({ ...options, played })
  return (await check(broker, play, { shrinks: false, keepsAll: true })).failed.length
}

function save(played: Played): string {
  mkdirSync(FOLDER, { recursive: true })
  const { broker, seed } = played.schedule
  const file = path.join(FOLDER, `${broker}-${seed}.json`)
  writeFileSync(file, JSON.stringify(played))
  return file
}

function brokersOf(text: string): BrokerName[] {
  const all = Object.keys(BROKERS) as BrokerName[]
  const names = text === 'all' ? all : text.split(',')
  return names.map((name) => {
    const broker = all.find((each) => each === name)
    if (broker === undefined) throw new Error(`there is no broker ${name}; there are ${all.join(', ')}`)
    return broker
  })
}

function numberOf(text: string, name: string): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name} must be a whole number, not ${text}`)
  return number
}
