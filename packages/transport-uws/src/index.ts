export { createUwsTransport } from './transport.js'
