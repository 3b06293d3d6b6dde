module ramie-lab-peer

go 1.23
