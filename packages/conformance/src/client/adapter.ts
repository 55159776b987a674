import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** A command must be answered in this time. The longest waits of a case are shorter. */
const ANSWER_MS = 30_000
const STOP_MS = 5_000
/** Of what the program writes to standard error, for the report of a failure. */
const MAX_ERROR_CHARACTERS = 10_000

/** A command of the runner failed, with the code that the client gives. */
export class CommandError extends Error {
  readonly code: string
  readonly isRetryable: boolean

  constructor(code: string, message = '', isRetryable = false) {
    super(`${code}: ${message}`)
    this.code = code
    this.isRetryable = isRetryable
  }
}

interface Answer {
  readonly id: number
  readonly ok?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: string; readonly message?: string; readonly retryable?: boolean }
}

interface Waiter {
  resolve(answer: Readonly<Record<string, unknown>>): void
  reject(error: Error): void
}

/** What an adapter says of itself in its first line. */
export interface Hello {
  readonly name: string
  readonly can: readonly string[]
}

/** A program that drives a client: a command per line on its standard input, an answer per line on its standard output. */
export class Adapter {
  readonly hello: Promise<Hello>
  readonly #process: ChildProcess
  readonly #input: Writable
  readonly #waiters = new Map<number, Waiter>()
  #count = 0
  #errors = ''
  #ended: Error | undefined

  constructor([program = '', ...parameters]: readonly string[], cwd: string, env = process.env) {
    const child = spawn(program, parameters, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#process = child
    this.#input = child.stdin
    child.stdin.on('error', (error) => this.#end(error))
    child.on('error', (error) => this.#end(error))
    child.on('exit', (code, signal) => this.#end(new Error(`the adapter has ended with ${code ?? signal}`)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-MAX_ERROR_CHARACTERS)
    })
    this.hello = this.#read(child.stdout)
    this.hello.catch(() => undefined)
  }

  /**
   * @param answerMs It must be answered in this time; `Infinity`: whenever there is something to tell.
   * @throws {CommandError} The client refused.
   */
  async call(
    command: Readonly<Record<string, unknown>>,
    answerMs = ANSWER_MS,
  ): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#count
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      return await new Promise((resolve, reject) => {
        if (this.#ended) throw this.#ended
        this.#waiters.set(id, { resolve, reject })
        if (answerMs !== Number.POSITIVE_INFINITY) {
          timer = setTimeout(
            () => reject(new Error(`no answer in ${answerMs} ms to ${JSON.stringify(command)}${this.#said()}`)),
            answerMs,
          )
        }
        this.#input.write(`${JSON.stringify({ id, ...command })}\n`)
      })
    } finally {
      clearTimeout(timer)
      this.#waiters.delete(id)
    }
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null || this.#process.pid === undefined) return
    const exit = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#input.end()
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), STOP_MS)
    await exit
    clearTimeout(timer)
  }

  #read(output: Readable): Promise<Hello> {
    return new Promise((resolve, reject) => {
      let isGreeted = false
      createInterface({ input: output }).on('line', (line) => {
        let said: unknown
        try {
          said = JSON.parse(line)
        } catch {
          this.#end(new Error(`the adapter wrote a line that is no JSON: ${line.slice(0, 200)}`))
          return
        }
        if (isGreeted) this.#answered(said as Answer)
        else resolve((said as { hello: Hello }).hello)
        isGreeted = true
      })
      this.#process.once('exit', () => reject(this.#ended))
      this.#process.once('error', reject)
    })
  }

  #answered({ id, ok, error }: Answer): void {
    const waiter = this.#waiters.get(id)
    if (error) waiter?.reject(new CommandError(error.code, error.message, error.retryable))
    else waiter?.resolve(ok ?? {})
  }

  #end(error: Error): void {
    this.#ended ??= new Error(`${error.message}${this.#said()}`)
    for (const { reject } of this.#waiters.values()) reject(this.#ended)
  }

  #said(): string {
    return this.#errors === '' ? '' : `; it said:\n${this.#errors}`
  }
}
