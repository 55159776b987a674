import { type ChildProcess, fork } from 'node:child_process'
import { RunError } from '../../exit-codes.js'
import { missingPackage } from '../../missing-package.js'
import type { NodeAnswers, NodeCommand, NodeEvent } from './messages.js'

const ANSWER_TIMEOUT_MS = 60_000
/** A node that still runs this long after it lost its channel is killed. */
const STOP_TIMEOUT_MS = 3_000
/** Output that is kept, to explain its death. */
const MAX_OUTPUT_CHARS = 4_000

/** A node and the process it runs in. */
export class NodeProcess {
  /** Rejects when the process ends unasked; never resolves. */
  readonly failed: Promise<never>
  readonly #name: string
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #waiting = new Map<number, (event: NodeEvent) => void>()
  #output = ''
  #lastId = 0
  #isStopping = false

  constructor(name: string) {
    this.#name = name
    const child = fork(new URL('./node.js', import.meta.url), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS)
      })
    }
    child.on('message', (event: NodeEvent) => this.#waiting.get(event.id)?.(event))
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()))
    this.failed = new Promise((_, reject) => {
      child.once('error', (cause) => reject(new RunError(`${name} could not be started`, { cause })))
      child.once('close', (code, signal) => {
        if (!this.#isStopping) reject(this.#deathNotice(signal ?? `exit code ${code}`))
      })
    })
    this.failed.catch(() => undefined) // Whoever waits for an answer races against it; between two waits nobody does.
  }

  /** @throws {RunError} when the node cannot, or ends, or does not answer within a time beyond `extraMs`. */
  async ask<Type extends NodeCommand['type']>(
    command: Extract<NodeCommand, { readonly type: Type }>,
    extraMs = 0,
  ): Promise<NodeAnswers[Type]> {
    const id = ++this.#lastId
    let timer: NodeJS.Timeout | undefined
    const answered = new Promise<NodeAnswers[Type]>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new RunError(`${this.#name} did not answer to ${command.type}`)),
        ANSWER_TIMEOUT_MS + extraMs,
      )
      this.#waiting.set(id, (event) => {
        if (event.type === 'answer') resolve(event.answer as NodeAnswers[Type])
        else reject(new RunError(`${this.#name}: ${event.message}`))
      })
    })
    // A closed channel means that the process is ending, which `failed` reports better.
    this.#child.send({ id, command }, () => undefined)
    try {
      return await Promise.race([this.failed, answered])
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
  }

  /** Ends the process; resolves when it is gone. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.#child.connected) this.#child.disconnect()
    const killTimer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    if (this.#child.pid !== undefined) await this.#exited
    clearTimeout(killTimer)
  }

  #deathNotice(ending: string): RunError {
    const output = this.#output.trim()
    const way = missingPackage(output)
    if (way !== undefined) return new RunError(`${this.#name}: ${way}`)
    return new RunError(`${this.#name} ended (${ending})${output === '' ? '' : `; its last output:\n${output}`}`)
  }
}
