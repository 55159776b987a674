import { describe, expect, it } from 'vitest'
import { DEFAULT_OPTIONS } from 'webmq-conformance'
import { createPackagedTransport } from './packaged.js'

describe('a transport in a package of its own', () => {
  it('is made by what the package exports', async () => {
    const transport = await createPackagedTransport('webmq-transport-uws', 'createUwsTransport', DEFAULT_OPTIONS)
    expect(transport.name).toBe('uws')
  })

  it.each([
    [
      'webmq-transport-none',
      'webmq-transport-none is not installed; install it with `npm install webmq-transport-none`',
    ],
    ['webmq-transport-uws', 'webmq-transport-uws does not export createOther'],
  ])('says what is missing of %s, and how to get it', async (name, what) => {
    const failure = createPackagedTransport(name, 'createOther', DEFAULT_OPTIONS)
    await expect(failure).rejects.toMatchObject({
      code: 'E_TRANSPORT_MISSING',
      message: expect.stringContaining(what),
    })
  })
})
