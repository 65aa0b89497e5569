// SPDX-License-Identifier: MIT OR Apache-2.0
// A firmware that translates addresses, as Intel's servers have it: the method
// that Linux's drivers/acpi/acpi_adxl.c calls. Names of components are those
// that a Sapphire Rapids prints. Its map is known.toml's; two nodes of 1 GiB,
// the second of which has three channels, page by page.
DefinitionBlock ("", "SSDT", 2, "SOLOIS", "ADXL", 1)
{
    Scope (\_SB)
    {
        Device (ADXL)
        {
            Name (_HID, "SOLO0001")

            // Parity of the bits of Arg0.
            Method (PAR, 1, Serialized)
            {
                Local0 = Arg0 ^ (Arg0 >> 32)
                Local0 ^= Local0 >> 16
                Local0 ^= Local0 >> 8
                Local0 ^= Local0 >> 4
                Local0 ^= Local0 >> 2
                Local0 ^= Local0 >> 1
                Return (Local0 & 1)
            }

            Method (_DSM, 4, Serialized)
            {
                If (Arg0 != ToUUID ("aa3c050a-7ea4-4c1f-afda-1267dfd3d48d"))
                {
                    Return (Buffer (1) { 0 })
                }
                Switch (ToInteger (Arg2))
                {
                    Case (0) { Return (Buffer (1) { 0x07 }) }
                    Case (1)
                    {
                        Return (Package (2) { 0, Package (15) {
                            "SystemAddress", "ProcessorSocketId",
                            "MemoryControllerId", "ChannelAddress",
                            "ChannelId", "RankAddress", "PhysicalRankId",
                            "DimmSlotId", "DimmRankId", "Row", "Column",
                            "Bank", "BankGroup", "ChipSelect", "ChipId" } })
                    }
                    Case (2)
                    {
                        Local0 = DerefOf (Arg3 [0])
                        Return (DEC (Local0))
                    }
                }
                Return (Buffer (1) { 0 })
            }

            Method (DEC, 1, Serialized)
            {
                If (Arg0 >= 0x80000000)
                {
                    Return (Package (2) { 1, Package (0) {} })
                }
                Name (OUT, Package (2) { 0, Package (15) {
                    0, 0, 0, 0xFFFFFFFFFFFFFFFF, 0, 0xFFFFFFFFFFFFFFFF, 0, 0,
                    0, 0, 0, 0, 0, 0, 0xFFFFFFFFFFFFFFFF } })
                Local1 = DerefOf (OUT [1])
                Local2 = Arg0 & 0x3FFFFFFF
                Local1 [0] = Arg0
                Local1 [1] = Arg0 >> 30
                If (Arg0 < 0x40000000)
                {
                    Local1 [2] = PAR (Local2 & 0x00042100)   // 8 ^ 13 ^ 18
                    Local1 [4] = PAR (Local2 & 0x00104040)   // 6 ^ 14 ^ 20
                    Local1 [10] = ((Local2 >> 3) & 7) | (((Local2 >> 9) & 0x3F) << 3)
                }
                Else
                {
                    Local1 [4] = (Local2 >> 12) % 3
                    Local2 = (((Local2 >> 12) / 3) << 12) | (Local2 & 0xFFF)
                    Local1 [10] = ((Local2 >> 3) & 0xF) | (((Local2 >> 8) & 0x7F) << 4)
                }
                Local3 = PAR (Local2 & 0x00808000)       // 15 ^ 23
                Local1 [6] = Local3
                Local1 [8] = Local3
                Local1 [13] = Local3 << 1
                Local1 [12] = PAR (Local2 & 0x00200080) | (PAR (Local2 & 0x00410000) << 1)
                Local1 [11] = PAR (Local2 & 0x00820000) | (PAR (Local2 & 0x01000000) << 1)
                Local1 [9] = ((Local2 >> 18) & 0x3F) | ((Local2 >> 25) << 6)
                OUT [1] = Local1
                Return (OUT)
            }
        }
    }
}
