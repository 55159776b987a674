import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import { asking, head, withBody } from '../requests.js'

const SOCKETS = 4
/** All clients together fill the log of the defaults. */
const APPENDS = 900
const META = JSON.stringify('x'.repeat(200_000))
const BODIES: readonly string[] = [
  `[${'1,'.repeat(120_000)}1]`,
  `[${'1,'.repeat(65_000)}1]`,
  `[${'[],'.repeat(32_000)}[]]`,
  `[${Array.from({ length: 16_000 }, (_, place) => `{"k${place}":0}`).join(',')}]`,
  `["${'x'.repeat(250_000)}"]`,
  '['.repeat(250_000),
]
const LIVES = ['Stream-TTL: 0', 'Stream-Expires-At: 2020-01-01T00:00:00Z', 'Stream-TTL: 1']

/** The addresses of streams: what is asked for in few bytes, and costs much. */
export const durableCases: readonly AttackCase[] = [
  {
    name: 'durable-heads',
    does: 'writes a stream of 900 appends, ends it, and asks for its head as fast as it is answered',
    fills: ['inbox', 'log', 'messageIds', 'streams'],
    connections: SOCKETS + 1,
    attack: async (client) =>
      await client.repeat(async () => {
        const key = `evil.heads.${client.index}`
        await write(client, key, '', APPENDS)
        await asking(SOCKETS, () => head(`HEAD /streams/${key}`))(client)
      }),
  },
  {
    name: 'durable-reads',
    does: 'asks for an ended stream that has 200 kB of meta, and hardly a text',
    fills: ['inbox', 'message', 'log', 'messageIds', 'streams'],
    connections: SOCKETS + 1,
    attack: async (client) =>
      await client.repeat(async () => {
        const key = `evil.reads.${client.index}`
        await write(client, key, META, 1)
        await asking(SOCKETS, () => head(`GET /streams/${key}`))(client)
      }),
  },
  {
    name: 'durable-json',
    does: 'posts 250 kB of lists, objects and numbers as JSON to a stream that is soon full',
    fills: ['body', 'log', 'streams'],
    attack: async (client) => {
      const line = (method: string) => `${method} /streams/evil.json.${client.index}`
      const requestOf = (place: number) =>
        place === 0 ? withBody(line('PUT'), '[]') : withBody(line('POST'), BODIES[place % BODIES.length] ?? '')
      await asking(1, requestOf)(client)
    },
  },
  {
    name: 'durable-lives',
    does: 'makes streams that are over as they begin, or a second later',
    fills: ['log', 'streams'],
    attack: async (client) => {
      const requestOf = (place: number) =>
        head(`PUT /streams/evil.lives.${client.index}.${place % 10}`, `${LIVES[place % LIVES.length]}\r\n`)
      await asking(1, requestOf)(client)
    },
  },
]

/** Writes and ends a stream of `appendCount` appends. @throws {SocketEnded} when the server ends the connection. */
async function write(client: Attacker, key: string, meta: string, appendCount: number): Promise<void> {
  const connection = await client.open()
  await client.send(connection, `stream s ${key} of=S seq=0 kind=start\n${meta}`)
  for (let sequence = 1; sequence <= appendCount; sequence++)
    await client.send(connection, `stream a${sequence} ${key} of=S seq=${sequence} kind=append\n"${'x'.repeat(30)}"`)
  await client.send(connection, `stream e ${key} of=S seq=${appendCount + 1} kind=end\n`)
}
