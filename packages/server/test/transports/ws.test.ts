import { transportSuite } from 'webmq-conformance'
import { makeCertificate } from 'webmq-services'
import { createWsTransport } from '../../src/adapters/transports/ws/transport.js'

transportSuite('ws', createWsTransport, {
  capabilities: {
    tls: true,
    tlsReload: true,
    attach: true,
    threads: false,
    compression: true,
    pause: true,
    overflow: true,
    answers: false,
    unixSocket: true,
    proxyProtocol: false,
    sse: true,
  },
  makeCertificate,
  traits: { invalidDeflateCode: 1007 },
})
