export { YjsProvider } from './provider.js'
export type { ProviderEvents, ProviderOptions } from './types.js'
