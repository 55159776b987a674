import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Where full logs of the steps go. */
const LOG_DIR = path.join(ROOT, '.cache', 'logs')
const QUIET_NOTICE_MS = 15_000
const TAIL_LINES = 25

/** A failure with a sentence for the person at the keyboard; never printed with a stack. */
export class StepError extends Error {}

/**
 * Runs one step of the set-up and says so: a line when it starts, one when it ends, and how long it took.
 * @param {string} title what is being done, in the words of the user
 * @param {() => Promise<unknown>} run
 */
export async function step(title, run) {
  const started = performance.now()
  process.stdout.write(`▸ ${title}\n`)
  const result = await run()
  process.stdout.write(`  done in ${((performance.now() - started) / 1000).toFixed(1)} s\n`)
  return result
}

/**
 * Runs a command with its output in a log file, and shows from time to time that it is alive.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, log: string, show?: boolean }} options
 *   `log`: name of the log file. `show`: also pass the output through.
 * @returns {Promise<{ exitCode: number, output: string }>} `exitCode` 127 when the command does not exist.
 */
export async function run(command, args, { cwd = ROOT, env = process.env, log, show = false }) {
  mkdirSync(LOG_DIR, { recursive: true })
  const file = createWriteStream(path.join(LOG_DIR, `${log}.log`))
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks = []
  let lastLine = ''
  const started = performance.now()
  const notice = setInterval(() => {
    if (!show)
      process.stdout.write(`  … ${((performance.now() - started) / 1000).toFixed(0)} s: ${lastLine.slice(0, 100)}\n`)
  }, QUIET_NOTICE_MS)
  const take = (chunk) => {
    chunks.push(chunk)
    file.write(chunk)
    if (show) process.stdout.write(chunk)
    const lines = chunk.toString().trimEnd().split('\n')
    lastLine = lines.at(-1) || lastLine
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  const exitCode = await new Promise((resolve, reject) => {
    child.on('error', (error) => (error.code === 'ENOENT' ? resolve(127) : reject(error)))
    child.on('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)))
  })
  clearInterval(notice)
  await new Promise((resolve) => file.end(resolve))
  return { exitCode, output: Buffer.concat(chunks).toString() }
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
