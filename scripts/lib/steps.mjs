import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync } from 'node:fs'
import { setPriority } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Where full logs of the steps go. */
const LOG_DIR = path.join(ROOT, '.cache', 'logs')
const QUIET_NOTICE_MS = 15_000
const TAIL_LINES = 25
/** Priority of background steps: a third of the share of others, so that they still finish before the end. */
const BACKGROUND_PRIORITY = 5

/** A failure with a sentence for the person at the keyboard; never printed with a stack. */
export class StepError extends Error {}

let lastPrintedAtMs = performance.now()

/** Prints one line, or several. */
export function print(text) {
  lastPrintedAtMs = performance.now()
  process.stdout.write(`${text}\n`)
}

/**
 * Runs one step and prints a line when it starts, and one with its duration when it ends. Steps may run side by side.
 * @template T
 * @param {string} title what is being done, in the words of the user
 * @param {() => Promise<T>} run
 * @returns {Promise<T>}
 */
export async function step(title, run) {
  const startedAtMs = performance.now()
  print(`▸ ${title}`)
  const result = await run()
  print(`✓ ${title}: ${seconds(startedAtMs)}`)
  return result
}

/**
 * Waits for all lanes of steps. Throws a failure only when every lane has ended, so that its sentence comes last.
 * @template T
 * @param {...Promise<T>} lanes
 * @returns {Promise<T[]>}
 */
export async function sideBySide(...lanes) {
  await Promise.allSettled(lanes)
  return await Promise.all(lanes)
}

/**
 * Runs a command with its output in a log file, and prints a sign of life after a while without output.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, log: string, show?: boolean, isBackground?: boolean }} options
 *   `log`: name of the log file. `show`: also pass the output through, in whole lines. `isBackground`: at a low priority.
 * @returns {Promise<{ exitCode: number, output: string }>} `exitCode` 127 when the command does not exist.
 */
export async function run(command, args, { cwd = ROOT, env = process.env, log, show = false, isBackground = false }) {
  mkdirSync(LOG_DIR, { recursive: true })
  const file = createWriteStream(path.join(LOG_DIR, `${log}.log`))
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  if (isBackground && child.pid !== undefined) lowerPriority(child.pid)
  let output = ''
  let shownLength = 0
  const startedAtMs = performance.now()
  const notice = setInterval(() => {
    if (performance.now() - lastPrintedAtMs < QUIET_NOTICE_MS) return
    const lastLine = output.trimEnd().split('\n').at(-1)
    print(`  … ${log}, ${seconds(startedAtMs)}: ${lastLine.slice(0, 100)}`)
  }, QUIET_NOTICE_MS)
  const showLines = (end) => {
    if (show && end > shownLength) print(output.slice(shownLength, end).replace(/\n$/, ''))
    shownLength = end
  }
  const take = (text) => {
    output += text
    file.write(text)
    showLines(output.lastIndexOf('\n') + 1)
  }
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take)
  const exitCode = await new Promise((resolve, reject) => {
    child.on('error', (error) => (error.code === 'ENOENT' ? resolve(127) : reject(error)))
    child.on('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)))
  })
  clearInterval(notice)
  showLines(output.length)
  await new Promise((resolve) => file.end(resolve))
  return { exitCode, output }
}

/** The command's own children inherit it. */
function lowerPriority(pid) {
  try {
    setPriority(pid, BACKGROUND_PRIORITY)
  } catch (error) {
    // It has ended already.
    if (error.info?.code !== 'ESRCH') throw error
  }
}

function seconds(sinceMs) {
  return `${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`
}

/**
 * Runs a command that must succeed.
 * @param {string} sentence what to tell the user when it does not
 * @param {Parameters<typeof run>} command
 * @throws {StepError} with the sentence, the end of the output, and a hint when the network was the reason.
 */
export async function must(sentence, ...[command, args, options]) {
  const { exitCode, output } = await run(command, args, options)
  if (exitCode === 0) return output
  const tail = options.show ? '' : `\n\n${output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')}\n`
  throw new StepError(`${tail}\n${sentence}${networkHint(output)} (full log: .cache/logs/${options.log}.log)`)
}

const NETWORK_FAILURE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|Could not resolve host|failed to download|spurious network error|Temporary failure/i

function networkHint(output) {
  return NETWORK_FAILURE.test(output)
    ? ' The package registry could not be reached: check the network or the proxy.'
    : ''
}

/**
 * Runs a script's main function; a {@link StepError} ends the process with its sentence and exit code 1.
 * @param {() => Promise<void>} main
 */
export async function runScript(main) {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof StepError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
