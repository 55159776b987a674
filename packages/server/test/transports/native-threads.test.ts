import { transportSuite } from 'webmq-conformance'
import { makeCertificate } from 'webmq-services'
import { createNativeTransport } from '../../src/adapters/transports/native/transport.js'
import { capabilities } from './native-capabilities.js'

transportSuite('native, all by its threads', (options) => createNativeTransport(options, { isInline: false }), {
  capabilities,
  makeCertificate,
  repeatsOverTls: false,
  traits: { takesLaterUpgradesOverTls: false },
})
