import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** What the clients of a {@link Crowd} have received so far. */
export interface CrowdReport {
  readonly openCount: number
  readonly receivedCount: number
  /** Count of numbers that arrived after the same or a larger one. */
  readonly reorderedCount: number
  readonly closeCodes: Readonly<Record<string, number>>
  /** How often each client got each number: at `client * numberCount + number`. */
  readonly counts: Uint8Array
}

/** Thousands of clients in one other process. Client `n` connects at the path `/n` and reads texts of numbers. */
export class Crowd {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  /** Resolves when all are connected; they leave with the test. */
  static async connect(port: number, clientCount: number, numberCount: number): Promise<Crowd> {
    const file = fileURLToPath(new URL('./crowd-process.mjs', import.meta.url))
    const args = [port, clientCount, numberCount].map(String)
    const child = fork(file, args, { serialization: 'advanced' })
    onTestFinished(async () => {
      const ended = once(child, 'exit')
      if (child.connected) child.disconnect()
      await ended
    })
    const failed = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the clients ended with ${code}`)))
    await Promise.race([once(child, 'message'), failed])
    return new Crowd(child)
  }

  async report(): Promise<CrowdReport> {
    const answer = once(this.#child, 'message') as Promise<[CrowdReport]>
    this.#child.send('report')
    return (await answer)[0]
  }

  /** Resolves when the clients have received this many messages together, or no more arrive. Never rejects. */
  async received(count: number, timeoutMs: number): Promise<CrowdReport> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const report = await this.report()
      if (report.receivedCount >= count || performance.now() > deadline) return report
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
