export { msgpack } from './msgpack-codec.js'
