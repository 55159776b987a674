import type { Door, NodeAccess } from './door.js'
import { encoded, HANDLED } from './http.js'

const MAX_BYTES = 900

/** A reader who chooses what it asks for: never a 5xx. */
async function asked(house: NodeAccess, query: string, headers: Record<string, string> = {}): Promise<string> {
  const status = await house.status(`/sse?${query}`, headers)
  return status < 500 ? HANDLED : `failed with ${status}`
}

const PARAMETERS = ['listen', 'stream', 'since', 'last', 'rewind', 'token']

export const SSE_DOORS: readonly Door[] = [
  ...PARAMETERS.map((name): Door => {
    const others = name === 'listen' || name === 'stream' ? '' : 'listen=cell.%23&'
    return {
      name: `/sse: ${name} of the query`,
      give: (house, text) => asked(house, `${others}${name}=${encoded(text, MAX_BYTES)}`),
      expected: () => HANDLED,
    }
  }),
  {
    name: '/sse: Last-Event-ID',
    give: (house, { bytes }) => {
      const value = bytes
        .toString('latin1')
        .replaceAll(/[^\x20-\x7e]/g, '')
        .slice(0, MAX_BYTES)
      return asked(house, 'stream=cell.1', { 'last-event-id': value })
    },
    expected: () => HANDLED,
  },
]
