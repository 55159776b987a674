import { describe } from 'vitest'
import { answerTests } from './transport/answer-tests.js'
import { capabilityTests } from './transport/capability-tests.js'
import { closingTests } from './transport/closing-tests.js'
import { compressionTests } from './transport/compression-tests.js'
import type { CreateTransport } from './transport/harness.js'
import { httpTests } from './transport/http-tests.js'
import { laterUpgradeTests } from './transport/later-upgrade-tests.js'
import { lifecycleTests } from './transport/lifecycle-tests.js'
import { limitTests } from './transport/limit-tests.js'
import { messageTests } from './transport/message-tests.js'
import { multicastTests } from './transport/multicast-tests.js'
import { overflowTests } from './transport/overflow-tests.js'
import { proxyProtocolTests } from './transport/proxy-protocol-tests.js'
import { readingTests } from './transport/reading-tests.js'
import { slowPeerTests } from './transport/slow-peer-tests.js'
import { sseTests } from './transport/sse-tests.js'
import { tlsTests } from './transport/tls/suite.js'
import { STRICT_TRAITS, type TransportExpectations } from './transport/traits.js'
import { unixSocketTests } from './transport/unix-socket-tests.js'
import { upgradeTests } from './transport/upgrade-tests.js'

export type { CreateTransport } from './transport/harness.js'
export type { CertificatePem, MakeCertificate } from './transport/tls/certificates.js'
export type { TransportExpectations, TransportTraits } from './transport/traits.js'

/**
 * The tests that every transport passes: each sentence of the port, tested with the `ws` package and with raw sockets.
 * For vitest; needs the `ws` package.
 *
 * @param name Names the transport in the report.
 * @param create Makes a transport, not started.
 */
export function transportSuite(name: string, create: CreateTransport, expected: TransportExpectations): void {
  const traits = { ...STRICT_TRAITS, ...expected.traits }
  describe(`${name} transport`, () => {
    upgradeTests(create, traits)
    messageTests(create)
    multicastTests(create)
    overflowTests(create, expected.capabilities)
    answerTests(create, expected.capabilities)
    closingTests(create, traits)
    limitTests(create, traits)
    slowPeerTests(create)
    readingTests(create, expected.capabilities)
    httpTests(create, traits)
    laterUpgradeTests(create, true)
    lifecycleTests(create)
    if (expected.capabilities.sse) sseTests(create)
    capabilityTests(create, expected.capabilities)
    if (expected.capabilities.proxyProtocol) proxyProtocolTests(create)
    if (expected.capabilities.unixSocket) unixSocketTests(create, expected.capabilities)
    tlsTests(create, expected, traits)
    if (expected.capabilities.compression) compressionTests(create, traits)
  })
}
