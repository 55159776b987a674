import type { Attacker } from './attacker.js'
import type { RawSocket } from './raw-socket.js'

/** A request without a body. @param headers Lines with their ends. */
export function head(line: string, headers = ''): string {
  return `${line} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
}

/** A request with a body of JSON, in ASCII. */
export function withBody(line: string, body: string): string {
  return head(line, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body
}

/** Asks on some connections, each time once all was answered, and does not wait as it is told to. */
export function asking(
  count: number,
  requestOf: (place: number) => string,
  answers = 1,
): (client: Attacker) => Promise<void> {
  return async (client) =>
    await client.hold(count, async () => {
      const socket = await client.openSocket()
      for (let place = 0; !socket.hasEnded; place++) await ask(client, socket, requestOf(place), answers)
    })
}

/** Sends requests, and resolves with the heads of their answers or the end of the connection. */
export async function ask(client: Attacker, socket: RawSocket, request: string, answers = 1): Promise<void> {
  const { onData } = socket
  let missing = answers
  const answered = new Promise<void>((resolve) => {
    socket.onData = (chunk) => {
      onData(chunk)
      missing -= chunk.toString('latin1').match(/HTTP\/1\.1 \d/g)?.length ?? 0
      if (missing <= 0) resolve()
    }
  })
  await client.write(socket, request)
  await Promise.race([answered, socket.ended])
  socket.onData = onData
}
