import { readFileSync, writeFileSync } from 'node:fs'
import { CannotRun, EXIT } from './exit-codes.js'
import { type CheckOptions, HELP, readOptions } from './options.js'
import type { Played } from './playing/play.js'
import type { Schedule } from './playing/schedule.js'
import { shrink, smallerThan } from './playing/shrink.js'
import { jsonOf, type Outcome } from './report/outcome.js'
import { pageOf } from './report/page.js'
import { lineOf } from './report/report.js'
import { Tally } from './report/tally.js'
import { faultCommand } from './visiting/fault-command.js'
import { Visit } from './visiting/visit.js'

/** Streams and signal of the command line. */
export interface CliEnvironment {
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
  /** Aborted by SIGINT or SIGTERM: no schedule begins after that. */
  readonly signal: AbortSignal
}

const MAX_SHRINK_TRIES = 24
/** Of options whose value is nobody's business. */
const SECRETS = new Set(['--token'])

/** Runs one command line and returns the exit code. The result goes to `stdout`, with `--json` as JSON alone. */
export async function runCli(args: readonly string[], environment: CliEnvironment): Promise<number> {
  const { stdout, stderr, signal } = environment
  try {
    const options = readOptions(args)
    if (options === 'help') stdout.write(HELP)
    if (options === 'version') stdout.write(`${version()}\n`)
    if (typeof options === 'string') return EXIT.held
    const begun = new Date()
    const say = (text: string) => (options.isJson ? stderr : stdout).write(`${text}\n`)
    const rest = { command: commandOf(args), version: version(), beganAt: begun.toISOString() }
    const took = () => ({ tookMs: Date.now() - begun.getTime() })
    const isVisit = options.target === 'webmq' && options.urls.length > 0
    const outcome: Outcome = isVisit
      ? await visited(options, environment, say, rest, took)
      : { ...(await judgeOther(options, signal, say)), ...rest, ...took() }
    if (outcome.schedules.length === 0) throw new CannotRun('no schedule was played to its end')
    say(summaryOf(outcome))
    if (options.report !== undefined) say(`page: ${save(options.report, pageOf(outcome))}`)
    if (options.isJson) stdout.write(`${jsonOf(outcome)}\n`)
    return outcome.verdict === 'held' ? (signal.aborted ? EXIT.interrupted : EXIT.held) : EXIT.violated
  } catch (error) {
    const text =
      error instanceof CannotRun
        ? error.message
        : error instanceof Error
          ? (error.stack ?? error.message)
          : String(error)
    stderr.write(`error: ${text}\n`)
    return EXIT.notRun
  }
}

async function visited(
  options: CheckOptions,
  { signal }: CliEnvironment,
  say: (text: string) => void,
  rest: Pick<Outcome, 'command' | 'version' | 'beganAt'>,
  took: () => Pick<Outcome, 'tookMs'>,
): Promise<Outcome> {
  const { schedules, seed, lengthMs, commands, faultMs, mayLoseLog } = options
  let shrinkLeftMs = options.shrinkMs
  const settleMs = commands.length === 0 ? 0 : options.settleMs
  const visit = await Visit.begin(
    { ...options, settleMs },
    {
      ...{ count: schedules, seed, lengthMs, signal },
      commands: commands.map((line) => faultCommand(line, { maxMs: faultMs, mayLoseLog })),
    },
  )
  const tally = new Tally(visit.promised.rules.log)
  try {
    for (const [name, value] of visit.promised.facts) say(`${name}: ${value}`)
    await visit.play(async (played, tookMs) => {
      expectPlayed(played)
      tally.add(played, tookMs)
      say(lineOf(played, tookMs))
      if (played.violations.length === 0 || tally.isFull) return
      const beganAtMs = performance.now()
      const smallest = await smallestOf(visit, played, shrinkLeftMs, signal, say)
      shrinkLeftMs = Math.max(0, shrinkLeftMs - (performance.now() - beganAtMs))
      tally.fail(smallest, smallest !== played)
    })
  } finally {
    visit.end()
  }
  const { facts } = visit.promised
  return tally.outcome({
    target: options.urls.join(', '),
    ...rest,
    ...took(),
    facts: [...facts, ['seed', String(seed)]],
  })
}

/** Looks for a smaller schedule that breaks one of the same promises. @returns the play of the smallest. */
async function smallestOf(
  visit: Visit,
  failed: Played,
  maxMs: number,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<Played> {
  const rules = new Set(failed.violations.map(({ rule }) => rule))
  let smallest = failed
  const fails = async (candidate: Schedule) => {
    if (signal.aborted) return false
    const played = await visit.playOnce(candidate)
    const isFailing = played.violations.some(({ rule }) => rules.has(rule))
    say(`  smaller, ${candidate.steps.length} steps, ${candidate.lengthMs} ms: ${isFailing ? 'fails, too' : 'passes'}`)
    if (isFailing) smallest = played
    return isFailing
  }
  await shrink(failed.schedule, { fails, smallerThan, maxTries: MAX_SHRINK_TRIES, maxMs })
  return smallest
}

/** What a command of the operator, or the checker itself, could not do says nothing of the installation. */
function expectPlayed({ violations }: Played): void {
  const mishap = violations.find(({ rule }) => rule === 'command' || rule === 'play')
  if (mishap !== undefined) throw new CannotRun(`${mishap.owner}: ${mishap.text}`)
}

async function judgeOther(options: CheckOptions, signal: AbortSignal, say: (text: string) => void) {
  const { target, urls, seed, lengthMs, theme, parallelCount, shrinkMs } = options
  if (options.commands.length > 0) throw new CannotRun('--fault-command is of an installation of WebMQ, at --url')
  let series: typeof import('./targets/series.js')
  try {
    series = await import('./targets/series.js')
  } catch (error) {
    const [, name] = /Cannot find package '([^']+)'/.exec(String(error)) ?? []
    if (name === undefined) throw error
    throw new CannotRun(`--target ${target} starts programs: npm install ${name}`)
  }
  const drawn = { count: options.schedules, seed, lengthMs, theme, parallelCount, shrinkMs }
  return await series.judgeTarget({ target, urls, ...drawn, say, signal })
}

function summaryOf({ verdict, counts, promises, schedules }: Outcome): string {
  const figures = Object.entries(counts).map(([name, value]) => `${name} ${value.toLocaleString('en')}`)
  const broken = promises.filter(({ violations }) => violations > 0)
  const seeds = schedules.filter(({ violations }) => violations > 0).map(({ seed }) => seed)
  return [
    figures.join(', '),
    ...broken.map(({ rule, promise, violations }) => `${rule} (${violations}): ${promise}`),
    verdict === 'held' ? 'HELD: every promise was kept' : `VIOLATED: seeds ${[...new Set(seeds)].join(', ')}`,
  ].join('\n')
}

function save(file: string, text: string): string {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new CannotRun(`the page cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  }
  return file
}

function commandOf(args: readonly string[]): string {
  const shown = args.map((arg, index) => {
    if (SECRETS.has(args[index - 1] ?? '')) return '…'
    const [name = ''] = arg.split('=', 1)
    return SECRETS.has(name) ? `${name}=…` : /^[\w./:@,=-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`
  })
  return ['npx webmq-check', ...shown].join(' ')
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return manifest.version
}
