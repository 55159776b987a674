import { transportSuite } from '../../src/conformance/transport-suite.js'
import { createNativeTransport } from '../../src/transports/native.js'

transportSuite('native', createNativeTransport, { capabilities: { tls: false, attach: true, threads: true } })
