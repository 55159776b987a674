// A listener with the client that Sockudo's authors keep for JavaScript. It says what it hears as lines of JSON.
//
// Arguments: the client's built file, port, key of the app, channels. It ends when its standard input does.
import { pathToFileURL } from 'node:url'
import { WebSocket } from 'ws'

const [file, port, key, ...channels] = process.argv.slice(2)
const REWIND_SECONDS = 60

// Node.js has one of its own since version 22.
globalThis.WebSocket = WebSocket
const { default: Sockudo } = await import(pathToFileURL(file).href)
const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`)
const client = new Sockudo(key, {
  ...{ cluster: 'local', wsHost: '127.0.0.1', wsPort: Number(port), forceTLS: false, enabledTransports: ['ws'] },
  ...{ protocolVersion: 2, connectionRecovery: true, messageDeduplicationCapacity: 100_000 },
})
const waiting = new Set(channels)
/** What a rewind brings before the server has said whether a recovery is complete: a gap is told before it. */
const held = new Map()
const release = (channel) => {
  for (const event of held.get(channel) ?? []) say(event)
  held.delete(channel)
}

client.connection.bind('connected', () => {
  // It asks for a recovery only of channels whose position it knows: of others it says nothing at all.
  if (waiting.size > 0) return
  for (const channel of channels) {
    release(channel)
    if (client.getRecoveryPosition(channel) === null) say({ what: 'told', channel, isRecovered: false })
    else held.set(channel, [])
  }
})
client.bind('sockudo:resume_success', ({ recovered, failed }) => {
  for (const { channel } of failed) say({ what: 'told', channel, isRecovered: false })
  for (const channel of channels) release(channel)
  for (const { channel } of recovered) say({ what: 'told', channel, isRecovered: true })
})
for (const channel of channels) {
  const subscription = client.subscribe(channel, { rewind: { seconds: REWIND_SECONDS } })
  subscription.bind('sockudo:subscription_succeeded', () => {
    if (waiting.delete(channel) && waiting.size === 0) say({ what: 'live' })
  })
  subscription.bind('message', ({ number }) => {
    const event = { what: 'message', channel, number }
    if (held.has(channel)) held.get(channel).push(event)
    else say(event)
  })
}

process.stdin.resume().once('end', () => process.exit())
