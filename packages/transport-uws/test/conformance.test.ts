import { describe, expect, it } from 'vitest'
import { DEFAULT_OPTIONS, RecordingSink, transportSuite } from 'webmq-conformance'
import { makeCertificate } from 'webmq-services'
import { createUwsTransport } from '../src/transport.js'

/** The groups of the suite are small: from two members on they get a topic, so it sees both ways of a multicast. */
const TOPIC_MEMBERS = 2

transportSuite('uws', (options) => createUwsTransport(options, undefined, TOPIC_MEMBERS), {
  capabilities: {
    tls: true,
    tlsReload: false,
    attach: false,
    threads: false,
    compression: true,
    pause: false,
    overflow: true,
    answers: false,
    unixSocket: true,
    proxyProtocol: false,
    sse: false,
  },
  makeCertificate,
  repeatsOverTls: false,
  traits: {
    violationCloseFrames: false,
    checksMasking: false,
    knowsEveryCloseCode: false,
    closeHandshake: false,
    // An older release, such as the one of the tests, answers 505.
    takesSplitRequestLine: false,
    // uSockets looks at the 10 s of a request head in steps of 4 s.
    headTimeoutMs: 14_000,
    remotePort: false,
    namesServerWindow: false,
    alpn: false,
    ignoresServerNameCase: false,
  },
})

describe('uws transport without its module', () => {
  it.each([
    ['is not installed', Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })],
    ['does not load', new Error('only some versions of Node are supported')],
  ])('says that it %s, and how to install it', async (fact, error) => {
    const transport = createUwsTransport(DEFAULT_OPTIONS, () => Promise.reject(error))
    const failure = await transport.start(new RecordingSink()).catch((reason: unknown) => reason)
    expect(failure).toMatchObject({ code: 'E_TRANSPORT_MISSING', cause: error })
    expect(failure).toHaveProperty('message', expect.stringContaining(fact))
    expect(failure).toHaveProperty(
      'message',
      expect.stringMatching(/npm install uNetworking\/uWebSockets\.js#v20\.\d+/),
    )
  })

  it('says so when something else has its name', async () => {
    const transport = createUwsTransport(DEFAULT_OPTIONS, () => Promise.resolve({ default: { App: () => undefined } }))
    await expect(transport.start(new RecordingSink())).rejects.toMatchObject({ code: 'E_TRANSPORT_MISSING' })
  })
})
