import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrokerKind } from '../../brokers/broker-choice.js'
import { RunError } from '../../exit-codes.js'
import type { Progress } from '../../progress.js'
import { asRecord } from '../../report/read-record.js'
import { commandLine } from '../../report/report.js'
import { CLIENTS_COLUMNS, clientsTarget } from '../../results/clients-record.js'
import type { ResultRow } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import { combineRuns } from '../../trials/medians.js'
import { NOT_MEASURED } from '../../trials/run-trials.js'
import { planTrials, type TrialStep } from '../../trials/trial-plan.js'
import { DEFAULT_DURATION_S, DEFAULT_WARMUP_S } from '../clients/options.js'
import type { BrokersConfig } from './brokers.js'

/** How large a run of `clients` is. */
export interface ClientsSize {
  readonly clients: number
  readonly backends: number
}

/** The rows of the table, and the runs behind their medians. */
export interface BrokersResult {
  readonly rows: readonly ResultRow[]
  readonly runs: readonly ResultRow[]
}

const BENCHMARK = fileURLToPath(new URL('../../../benchmark.js', import.meta.url))
/** Time allowed beyond the window: to connect, warm up and start a broker. Draining may take three windows. */
const MAX_RUN_OVERHEAD_S = 180
const MAX_DRAIN_FACTOR = 4
/** Text of a run that is kept, to explain its failure. */
const MAX_OUTPUT_CHARS = 4_000

/** Whether the broker can connect this many backends. */
export function isPossible({ backends }: ClientsSize, broker: BrokerKind): boolean {
  return broker !== 'memory' || backends === 1
}

/**
 * Runs `benchmark.js` once per broker, size and repeat; when it settles, no process of it is left.
 * @throws {RunError} when no run gave a result.
 */
export async function measureBrokers(
  config: BrokersConfig,
  { progress: output, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
): Promise<BrokersResult> {
  const cases = config.sizes.map(({ clients, backends }) => ({
    mode: 'clients',
    subscribers: clients,
    fields: { backends },
  }))
  const sizeOf = ({ subscribers, fields }: (typeof cases)[number]) => ({
    clients: subscribers,
    backends: fields.backends,
  })
  const steps = planTrials(cases, config.repeat, config.brokers, (testCase, broker) => {
    return isPossible(sizeOf(testCase as (typeof cases)[number]), broker)
  })
  const progress = new RunProgress(output, steps.length)
  if (config.out !== undefined) await mkdir(config.out, { recursive: true })
  const folder = config.out ?? (await mkdtemp(join(tmpdir(), 'webmq-bench-')))
  const measured: { readonly step: TrialStep<BrokerKind>; readonly row: ResultRow }[] = []
  try {
    for (const step of steps) {
      const size = sizeOf(step.testCase as (typeof cases)[number])
      const backends = size.backends === 1 ? '1 backend' : `${size.backends} backends`
      progress.step(`${step.target}, ${size.clients} clients, ${backends}, round ${step.repeat}`)
      const row = await rowOf(step, size, config, folder, progress, signal)
      measured.push({ step, row: { ...row, repeat: step.repeat, order: measured.length + 1 } })
    }
  } finally {
    progress.done()
    if (config.out === undefined) await rm(folder, { recursive: true })
  }
  if (measured.every(({ row }) => row.verdict === 'failed'))
    throw new RunError(measured[0]?.row.verdictReason ?? 'nothing to measure')
  const rows = cases.flatMap((testCase) =>
    config.brokers.flatMap((broker) => {
      const own = measured.filter(({ step }) => step.testCase === testCase && step.target === broker)
      return own.length === 0
        ? []
        : [
            combineRuns(
              own.map(({ row }) => row),
              CLIENTS_COLUMNS,
            ),
          ]
    }),
  )
  return { rows, runs: measured.map(({ row }) => row) }
}

async function rowOf(
  { target: broker, repeat }: TrialStep<BrokerKind>,
  { clients, backends }: ClientsSize,
  { duration, warmup, transport, clientsBy }: BrokersConfig,
  folder: string,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<ResultRow> {
  const flags = {
    clients,
    backends,
    broker,
    ...(duration === DEFAULT_DURATION_S ? {} : { duration }),
    ...(warmup === DEFAULT_WARMUP_S ? {} : { warmup }),
    ...(transport === 'native' ? {} : { transport }),
    ...(clientsBy === 'library' ? {} : { 'clients-by': clientsBy }),
  }
  const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])
  const command = commandLine(args)
  const file = join(folder, `${broker}-${clients}x${backends}-${repeat}`)
  const work = runBenchmark([...args, '--no-progress', '--json', `${file}.json`], { duration, warmup }, signal)
  try {
    const { text } = await progress.during(work, { expectedMs: (duration + warmup) * 1_000 })
    await writeFile(`${file}.txt`, text)
    const record = asRecord(JSON.parse(await readFile(`${file}.json`, 'utf8')), `${file}.json`)
    return { ...(record.rows[0] as ResultRow), command }
  } catch (error) {
    // The failure of one broker must not discard the figures of the others.
    if (!(error instanceof RunError) || signal.aborted) throw error
    progress.note(`${broker} failed: ${error.message}`)
    return {
      ...NOTHING,
      target: clientsTarget(transport, broker),
      subscribers: clients,
      backends,
      clientsBy,
      command,
      verdictReason: error.message,
    }
  }
}

const NOTHING = {
  ...NOT_MEASURED,
  mode: 'clients',
  verdict: 'failed',
  repeatCount: 1,
  spread: {},
} as const

/** Runs the bench in a process of its own, so that each run has a fresh generator. */
async function runBenchmark(
  args: readonly string[],
  { duration, warmup }: { readonly duration: number; readonly warmup: number },
  signal: AbortSignal,
): Promise<{ readonly text: string }> {
  signal.throwIfAborted()
  // A group of its own: Ctrl-C reaches only this process, which passes it on once.
  const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const interrupt = () => child.kill('SIGINT')
  signal.addEventListener('abort', interrupt, { once: true })
  const limitMs = (warmup + duration * MAX_DRAIN_FACTOR + MAX_RUN_OVERHEAD_S) * 1_000
  const timer = setTimeout(interrupt, limitMs)
  try {
    return await outcomeOf(child, limitMs)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', interrupt)
  }
}

async function outcomeOf(child: ChildProcess, limitMs: number): Promise<{ readonly text: string }> {
  const startMs = performance.now()
  let text = ''
  let messages = ''
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    text = (text + part).slice(-MAX_OUTPUT_CHARS)
  })
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    messages = (messages + part).slice(-MAX_OUTPUT_CHARS)
  })
  return await new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new RunError('the run could not be started', { cause })))
    child.once('close', (code) => {
      if (code === 0) resolve({ text })
      else if (performance.now() - startMs >= limitMs)
        reject(new RunError(`the run took more than ${limitMs / 1_000} s`))
      else reject(new RunError(reasonIn(messages) ?? `the run ended with ${code}`))
    })
  })
}

/** Last output of a failed run. */
function reasonIn(messages: string): string | undefined {
  const [, reason] = /^error: (.*)$/ms.exec(messages) ?? []
  return reason?.trim()
}
