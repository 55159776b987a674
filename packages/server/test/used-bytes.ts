import { once } from 'node:events'
import { connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

/** Uses of each door and cache. */
const COUNT = 20_000
export const MAX_GROWTH_BYTES = 4 * 1_048_576

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Memory that is in use: objects, and bytes beside the heap. */
export function usedBytes(): number {
  // What a finalizer frees is gone after the second time.
  for (let round = 0; round < 3; round++) collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Bytes that are still in use after calls with 0 to `COUNT` - 1, beside those of some first calls. */
export async function growthOf(call: (index: number) => unknown, warmUpCount = COUNT): Promise<number> {
  for (let index = 0; index < warmUpCount; index++) await call(index)
  const before = usedBytes()
  for (let index = 0; index < COUNT; index++) await call(warmUpCount + index)
  return usedBytes() - before
}

/** Bytes that are still in use after some calls. What they fill MUST be used afterwards, or the collector takes it. */
export async function growthOfFirst(count: number, call: (index: number) => unknown): Promise<number> {
  const before = usedBytes()
  for (let index = 0; index < count; index++) await call(index)
  return usedBytes() - before
}

/** As {@link growthOf}, for calls that take several uses at once. */
export async function growthOfRounds(
  round: (indexes: readonly number[]) => Promise<void>,
  { perRound, warmUpCount }: { readonly perRound: number; readonly warmUpCount: number },
): Promise<number> {
  const play = async (first: number, end: number) => {
    for (let at = first; at < end; at += perRound)
      await round(Array.from({ length: perRound }, (_, index) => at + index))
  }
  await play(0, warmUpCount)
  const before = usedBytes()
  await play(warmUpCount, warmUpCount + COUNT)
  return usedBytes() - before
}

/** Sends texts, and resolves once there are as many answers. */
function exchanging(send: (texts: readonly string[]) => void) {
  let left = 0
  let settle: { resolve(): void; reject(error: unknown): void } | undefined
  return {
    exchange: (texts: readonly string[], answerCount = texts.length) =>
      new Promise<void>((resolve, reject) => {
        left = answerCount
        settle = { resolve, reject }
        send(texts)
      }),
    answered: (count: number) => {
      left -= count
      if (left <= 0) settle?.resolve()
    },
    failed: (text: string) => settle?.reject(new Error(text)),
  }
}

/** Asks on one connection, each time once all of some requests are answered. @param status What answers should have. */
export async function asking(port: number, status = /^200$/) {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const { exchange, answered, failed } = exchanging((texts) => void socket.write(texts.join('')))
  socket.on('close', () => failed('the connection was closed'))
  socket.on('data', (chunk: Buffer) => {
    const statuses = Array.from(chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g), ([, found = '']) => found)
    const odd = statuses.find((found) => !status.test(found))
    if (odd !== undefined) failed(odd)
    answered(statuses.length)
  })
  return exchange
}

/** Speaks the protocol on one connection, as {@link asking} does. @param answer How answers should begin. */
export async function speaking(url: string, answer: RegExp) {
  const socket = new WebSocket(url, ['webmq.v1'], { perMessageDeflate: false })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const { exchange, answered, failed } = exchanging((texts) => {
    for (const text of texts) socket.send(text)
  })
  socket.on('close', (code, reason) => failed(`closed: ${code} ${reason}`))
  socket.on('message', (data: Buffer) => {
    const text = data.toString('latin1')
    if (!/^(ok|error) /.test(text)) return
    if (!answer.test(text)) failed(text)
    answered(1)
  })
  return exchange
}
