import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrokerKind } from '../../brokers/broker-choice.js'
import { EXIT, RunError } from '../../exit-codes.js'
import { asRecord } from '../../report/read-record.js'
import { commandLine } from '../../report/report.js'
import { clientsTarget } from '../../results/clients-record.js'
import type { ClientsConfig } from '../../results/clients-report.js'
import type { ResultColumn, ResultRow } from '../../results/result.js'
import type { ScenarioContext } from '../../scenario.js'
import { measureInTurns, type Rows } from '../../trials/row-scenario.js'
import { DEFAULT_DURATION_S, DEFAULT_WARMUP_S } from '../clients/options.js'

/** How large a run of `clients` is. */
export interface ClientsSize {
  readonly clients: number
  readonly backends: number
}

export interface ClientsCase extends ClientsSize, Pick<ClientsConfig, 'broker' | 'target'> {}

/** What all runs have in common. */
export interface ClientsRuns extends Pick<ClientsConfig, 'duration' | 'warmup' | 'transport' | 'clientsBy' | 'root'> {
  readonly cases: readonly ClientsCase[]
  readonly repeat: number
  readonly columns: readonly ResultColumn[]
  /** Folder for the files of every single run; absent: they are not kept. */
  readonly out?: string
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
 * Runs the `clients` scenario once per case and repeat, in turns; when it settles, no process of it is left.
 * @throws {RunError} when no run gave a result.
 */
export async function measureClients(runs: ClientsRuns, { progress, signal }: ScenarioContext): Promise<Rows> {
  const { cases, repeat, columns, duration, warmup, transport, clientsBy, out } = runs
  if (out !== undefined) await mkdir(out, { recursive: true })
  const folder = out ?? (await mkdtemp(join(tmpdir(), 'webmq-bench-')))
  const versions: Record<string, string> = {}
  try {
    const result = await measureInTurns({
      cases,
      repeat,
      columns,
      progress,
      signal,
      titleOf: ({ target, broker, clients, backends }) =>
        `${target === 'by-hand' ? 'by hand, ' : ''}${broker}, ${clients} clients, ${backends === 1 ? '1 backend' : `${backends} backends`}`,
      identityOf: (testCase) => ({
        target: clientsTarget(transport, testCase.broker, testCase.target),
        mode: 'clients',
        subscribers: testCase.clients,
        backends: testCase.backends,
        clientsBy,
        command: commandLine(flagsOf(testCase, runs)),
      }),
      async measure(testCase, turns, round): Promise<ResultRow> {
        const { target, broker, clients, backends } = testCase
        const args = flagsOf(testCase, runs)
        const file = join(folder, `${target === 'by-hand' ? 'by-hand-' : ''}${broker}-${clients}x${backends}-${round}`)
        const work = runBenchmark([...args, '--no-progress', '--json', `${file}.json`], { duration, warmup }, signal)
        const { text } = await turns.during(work, { expectedMs: (duration + warmup) * 1_000 })
        await writeFile(`${file}.txt`, text)
        const record = asRecord(JSON.parse(await readFile(`${file}.json`, 'utf8')), `${file}.json`)
        Object.assign(versions, record.versions)
        return { ...(record.rows[0] as ResultRow), command: commandLine(args) }
      },
    })
    return { ...result, versions }
  } finally {
    if (out === undefined) await rm(folder, { recursive: true })
  }
}

/** The command line of a row; defaults are left out. */
function flagsOf(testCase: ClientsCase, { duration, warmup, transport, clientsBy, root }: ClientsRuns): string[] {
  const flags = {
    clients: testCase.clients,
    backends: testCase.backends,
    broker: testCase.broker,
    ...(testCase.target === 'by-hand' ? { target: testCase.target } : {}),
    ...(duration === DEFAULT_DURATION_S ? {} : { duration }),
    ...(warmup === DEFAULT_WARMUP_S ? {} : { warmup }),
    ...(transport === 'native' ? {} : { transport }),
    ...(clientsBy === 'library' ? {} : { 'clients-by': clientsBy }),
    ...(root === undefined || testCase.target === 'by-hand' ? {} : { root }),
  }
  return Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])
}

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
      // Failed publishes are a figure of the row.
      if (code === EXIT.ok || code === EXIT.failedPublishes) resolve({ text })
      else if (performance.now() - startMs >= limitMs)
        reject(new RunError(`the run took more than ${limitMs / 1_000} s`))
      else reject(new RunError(reasonIn(messages) ?? `the run ended with ${code}`))
    })
  })
}

function reasonIn(messages: string): string | undefined {
  const [, reason] = /^error: (.*)$/ms.exec(messages) ?? []
  return reason?.trim()
}
