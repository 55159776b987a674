'use client'
export type * from '../stores/shown.js'
export { WebMQProvider, type WebMQProviderProps } from './client.js'
export * from './hooks.js'
