import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TlsCertificate } from 'webmq-server/ports'
import { closingTests } from '../closing-tests.js'
import { type CreateTransport, DEFAULT_OPTIONS, SERVER_NAME, withCertificates } from '../harness.js'
import { laterUpgradeTests } from '../later-upgrade-tests.js'
import { messageTests } from '../message-tests.js'
import { multicastTests } from '../multicast-tests.js'
import { overflowTests } from '../overflow-tests.js'
import { proxyProtocolTests } from '../proxy-protocol-tests.js'
import { readingTests } from '../reading-tests.js'
import { RecordingSink } from '../recording-sink.js'
import { slowPeerTests } from '../slow-peer-tests.js'
import { sseTests } from '../sse-tests.js'
import type { TransportExpectations, TransportTraits } from '../traits.js'
import { unixSocketTests } from '../unix-socket-tests.js'
import { upgradeTests } from '../upgrade-tests.js'
import { CertificateFolder } from './certificates.js'
import { disturbanceTests } from './disturbance-tests.js'
import { handshakeTests } from './handshake-tests.js'
import { reloadTests } from './reload-tests.js'
import { trafficTests } from './traffic-tests.js'

/** TLS that the transport terminates itself: its own rules, and the other suites over it. */
export function tlsTests(
  create: CreateTransport,
  { capabilities: expected, makeCertificate, repeatsOverTls = true }: TransportExpectations,
  traits: TransportTraits,
): void {
  describe('tls', () => {
    let folder: CertificateFolder
    let certificate: TlsCertificate
    beforeAll(async () => {
      folder = new CertificateFolder(makeCertificate)
      certificate = await folder.certificate(SERVER_NAME)
    })
    afterAll(() => folder.remove())

    if (!expected.tls) {
      it('is refused instead of going without', async () => {
        const start = async () => create({ ...DEFAULT_OPTIONS, tls: [certificate] }).start(new RecordingSink())
        await expect(start()).rejects.toMatchObject({ code: expect.toBeOneOf(['E_OPTION_INVALID', 'E_UNSUPPORTED']) })
      })
      return
    }

    const secure = withCertificates(create, () => [certificate])
    handshakeTests(create, makeCertificate, () => folder, traits)
    reloadTests(secure, () => folder, expected)
    trafficTests(secure, expected, traits)
    laterUpgradeTests(secure, traits.takesLaterUpgradesOverTls)
    disturbanceTests(secure, traits)
    if (!repeatsOverTls) return
    if (expected.proxyProtocol) proxyProtocolTests(secure, true)
    if (expected.unixSocket) unixSocketTests(secure, expected)
    upgradeTests(secure, traits)
    messageTests(secure)
    multicastTests(secure)
    overflowTests(secure, expected, { isShort: true })
    closingTests(secure, traits)
    slowPeerTests(secure)
    readingTests(secure, expected)
    if (expected.sse) sseTests(secure)
  })
}
